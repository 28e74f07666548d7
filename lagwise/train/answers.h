#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lagwise/ops/encoded.h"
#include "lagwise/tasks/task.h"

namespace lagwise {

class Model;

/// What a model made of a source, beside what was to be made of it.
struct Answer {
  std::string source, wanted, written;
};

/// How good whole answers are, as the most likely tokens make them one after another.
struct Answers {
  std::vector<Answer> all;
  double exact_match() const;  ///< the part that is to the byte what was wanted
  double chrf() const;         ///< data/text/chrf.h
};

/// Whether the examples of a task have answers: a model listens and says when it is done.
bool has_answers(const Task& task, const Model& model);

/// Has the model answer `examples` (0: all) sources spread over a split as in evaluate(),
/// `batch` at a time. An answer ends at the end token, or at the training length.
Answers write_answers(Model& model, const Task& task, const Draw& draw,
                      const std::string& split, int64_t examples = 0,
                      int64_t batch = 64,
                      const std::function<void(double)>& progress = {});

}  // namespace lagwise
