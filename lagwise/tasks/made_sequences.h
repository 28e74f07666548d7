#pragma once

#include <string>
#include <vector>

#include "lagwise/data/sources/dice.h"
#include "lagwise/tasks/task.h"

namespace lagwise {

/// One sequence of tokens with a target for each; -1: none.
struct MadeSequence {
  std::vector<int64_t> tokens, targets;
};

/// A task of sequences that are made on the spot, of any length, each by chance of its
/// own. Training never sees one twice. Every split (train, valid, test) has as many
/// `examples`, which are a function of the seed, the split, the index and the length.
class MadeSequences : public Task {
 public:
  /// `options`: takes `examples`, and refuses what nobody took.
  MadeSequences(const TaskConfig& config, Spec& options);

  void shape(ModelConfig& config) const override;
  Batch train_batch(int64_t step, int64_t micro_step, Rows rows) const override;
  int64_t size(const std::string& split, int64_t length = 0) const override;
  Batch eval_batch(const std::string& split, int64_t begin, int64_t end,
                   int64_t length = 0) const override;
  uint64_t hash() const override;

 protected:
  virtual int64_t vocabulary() const = 0;
  /// The sequence of `length` tokens that these dice make.
  virtual MadeSequence make(data::Dice dice, int64_t length) const = 0;
  /// One to train on; others than those a model is judged by if the task says so.
  virtual MadeSequence make_for_training(data::Dice dice, int64_t length) const {
    return make(dice, length);
  }

  /// Rows of one micro-step, of any length.
  Batch made_batch(int64_t step, int64_t micro_step, Rows rows, int64_t length) const;
  /// Those that make an example of a split.
  data::Dice example_dice(const std::string& split, int64_t index) const;
  /// Refuses a range of examples that is not within the split.
  void check_range(const std::string& split, int64_t begin, int64_t end) const;
  int64_t window(int64_t length) const { return length > 0 ? length : length_; }

 private:
  std::string text_;  // the task with all its options
  int64_t length_, examples_;
  uint64_t seed_;
};

}  // namespace lagwise
