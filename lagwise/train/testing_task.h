#pragma once

// Support for the tests of training; never part of the library.

#include <ATen/ATen.h>

#include <cmath>
#include <memory>

#include "lagwise/core/noise.h"
#include "lagwise/tasks/task.h"

namespace lagwise::testing {

/// A language model's task of eight letters that costs nothing to make: each token is
/// the one before it plus 1 or 2, and the model is to say which comes next, so that the
/// best loss is ln 2. Every batch is a function of what is asked.
class CountingTask : public Task {
 public:
  static constexpr int64_t kLetters = 8;

  CountingTask(const TaskConfig& config, int64_t examples)
      : config_(config), examples_(examples) {}

  void shape(ModelConfig& config) const override {
    config.model = "decoder_lm", config.vocabulary = kLetters;
  }
  std::string metric() const override { return "nats per token"; }
  Batch train_batch(int64_t step, int64_t micro_step, Rows rows) const override {
    return batch(Noise(config_.seed, 100, step, micro_step), rows.begin, rows.end,
                 config_.length);
  }
  Batch train_windows(int64_t step, int64_t micro_step, Rows rows,
                      int64_t length) const override {
    return batch(Noise(config_.seed, 100, step, micro_step), rows.begin, rows.end,
                 length);
  }
  int64_t size(const std::string&, int64_t = 0) const override { return examples_; }
  Batch eval_batch(const std::string& split, int64_t begin, int64_t end,
                   int64_t length = 0) const override {
    return batch(Noise(config_.seed, split == "test" ? 102 : 101), begin, end,
                 length > 0 ? length : config_.length);
  }
  double value(const Loss& total) const override {
    return total.sum.item<double>() / static_cast<double>(total.count);
  }
  uint64_t hash() const override {
    return config_.seed + 1000 * static_cast<uint64_t>(examples_);
  }

 private:
  static Batch batch(const Noise& noise, int64_t begin, int64_t end, int64_t length) {
    at::Tensor letters = at::empty({end - begin, length + 1}, at::kLong);
    for (int64_t b = begin; b < end; ++b) {
      const NoiseRow row = noise.at({.feature = b});
      int64_t* out = letters.data_ptr<int64_t>() + (b - begin) * (length + 1);
      auto last = static_cast<int64_t>(row.uniform(0) * kLetters);
      for (int64_t i = 0; i <= length; ++i) {
        out[i] = last;
        last = (last + (row.uniform(i + 1) < 0.5 ? 1 : 2)) % kLetters;
      }
    }
    Batch made;
    made.tokens = letters.narrow(1, 0, length).contiguous();
    made.targets = letters.narrow(1, 1, length).contiguous();
    return made;
  }

  TaskConfig config_;
  int64_t examples_;
};

}  // namespace lagwise::testing
