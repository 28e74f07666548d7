#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lagwise/models/model.h"
#include "lagwise/tasks/task.h"
#include "lagwise/train/adamw.h"
#include "lagwise/train/past.h"
#include "lagwise/train/recipe.h"
#include "lagwise/train/team.h"

namespace lagwise {

/// What the batch of one step gave, besides the gradients of the parameters.
struct StepGradient {
  double loss = 0;                  ///< summed over the targets
  int64_t targets = 0, tokens = 0;  ///< at least 1 target
  int64_t read = 0;                 ///< tokens of the past
  double norm = 0;                  ///< of the gradient of the mean over targets
  bool stop = false;  ///< somebody was asked to stop: there are no gradients
  std::string wrong;  ///< what is not a finite number; empty: all is well
  std::string where;  ///< it is not, as far as this process can tell
};

/// The gradients of a step, by everybody of a team for everybody: all of them end with
/// the same bits, and with those of one process alone.
class Gradients {
 public:
  /// All of which must outlive this object.
  Gradients(const Recipe& recipe, const Team& team, const Task& task, Model& model,
            AdamW& optimiser);

  /// The gradients of the sum of losses over all rows of step `step`, left in the
  /// parameters. Alone, `stop` ends it on the way; a team agrees at its end.
  StepGradient gather(int64_t step, const std::function<bool()>& stop);

 private:
  struct Own {  // what this process found in its own leaves
    bool stop = false;
    int64_t targets = 0, tokens = 0, read = 0;
    std::vector<double> losses;  // of each leaf
    bool finite = true;
    Batch batch;  // the last one, or that whose loss is not finite
    Draw draw;
  };
  Batch next_batch(const Draw& draw, int64_t past, int64_t leaf) const;
  Loss loss_of(const Batch& batch, int64_t past, const Draw& draw) const;
  void backward_leaf(int64_t step, int64_t leaf, const std::function<bool()>& stop,
                     Own& own);
  StepGradient agreed(const Own& own) const;

  const Recipe& recipe_;
  const Team& team_;
  const Task& task_;
  Model& model_;
  AdamW& optimiser_;
  PastMultiples past_;
};

}  // namespace lagwise
