#pragma once

#include <string>
#include <vector>

#include "lagwise/data/sets/examples.h"
#include "lagwise/tasks/task.h"

namespace lagwise {

/// What a task of classes knows besides its examples.
struct ClassificationFacts {
  std::string name;  ///< of the task, for messages
  int64_t vocabulary = 0, classes = 0;
  int64_t length = 0;              ///< tokens; longer sequences are cut
  std::vector<int64_t> grid = {};  ///< of images, which are never cut
  int64_t patch = 1;               ///< numbers that make one row: ModelConfig::patch
  std::vector<std::string> words = {};
  std::string tokenizer = {};                 ///< as tokenizer.json has it; empty: none
  std::vector<std::string> class_names = {};  ///< empty: their numbers
  uint64_t seed = 0;
};

/// One class for each sequence, or pair of sequences. Training draws examples with
/// replacement, each row of a batch by itself (tasks/draws.h): epochs would need to
/// know how many micro-steps a step has. Rows are padded with 0 to the longest of the
/// batch; `lengths` says what is real, and is left out where all is.
class Classification : public Task {
 public:
  /// DataError where there is nothing to train on, or a label is no class.
  Classification(ClassificationFacts facts, data::ExampleSet examples);

  void shape(ModelConfig& config) const override;
  std::string metric() const override { return "accuracy"; }
  bool higher_is_better() const override { return true; }
  Batch train_batch(int64_t step, int64_t micro_step, Rows rows) const override;
  int64_t size(const std::string& split, int64_t length = 0) const override;
  Batch eval_batch(const std::string& split, int64_t begin, int64_t end,
                   int64_t length = 0) const override;
  double value(const Loss& total) const override;
  std::optional<double> guess(const std::string& split) const override;
  std::vector<std::string> words() const override { return facts_.words; }
  std::string tokenizer() const override { return facts_.tokenizer; }
  std::vector<std::string> class_names() const override { return facts_.class_names; }
  uint64_t hash() const override { return examples_.hash(); }

 private:
  Batch gather(const data::ExampleSplit& split, const std::vector<int64_t>& chosen,
               int64_t length) const;

  ClassificationFacts facts_;
  data::ExampleSet examples_;
};

}  // namespace lagwise
