#pragma once

// Support for the tests of evaluation and generation; never part of the library.

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lagwise/models/testing_models.h"
#include "lagwise/tasks/task.h"

namespace lagwise::testing {

/// Tokens of 0..10 in a row, any window of them, and the alphabet a..k.
class LetterStream : public Task {
 public:
  explicit LetterStream(int64_t tokens, int64_t trained = 8)
      : tokens_(random_tokens(1, tokens, 11, 3)), trained_(trained) {}

  void shape(ModelConfig& config) const override { config.vocabulary = 11; }
  std::string metric() const override { return "nats"; }
  Batch train_batch(int64_t, int64_t, Rows rows) const override {
    return eval_batch("valid", rows.begin, rows.end);
  }
  int64_t size(const std::string&, int64_t length) const override {
    return (tokens_.size(1) - 1) / wanted(length);
  }
  Batch eval_batch(const std::string&, int64_t begin, int64_t end,
                   int64_t length = 0) const override {
    const int64_t n = wanted(length);
    Batch batch;
    batch.tokens = tokens_.narrow(1, begin * n, (end - begin) * n).view({-1, n});
    batch.targets = tokens_.narrow(1, begin * n + 1, (end - begin) * n).view({-1, n});
    return batch;
  }
  double value(const Loss& total) const override {
    return total.sum.item<double>() / static_cast<double>(total.count);
  }
  std::vector<int64_t> stream(const std::string&, int64_t first,
                              int64_t count) const override {
    const int64_t* data = tokens_.data_ptr<int64_t>();
    const int64_t end = std::min(first + count, tokens_.size(1));
    return {data + first, data + std::max(first, end)};
  }
  std::unique_ptr<Grammar> grammar() const override {
    return make_grammar ? make_grammar() : nullptr;
  }
  uint64_t hash() const override { return 7; }

  std::unique_ptr<Grammar> (*make_grammar)() = nullptr;

 private:
  int64_t wanted(int64_t length) const { return length > 0 ? length : trained_; }
  at::Tensor tokens_;  // [1, N]
  int64_t trained_;
};

/// The trained length 8, so that small windows are long ones.
inline ModelConfig short_model(const std::string& encoding = "rope:layout=half",
                               const std::string& attention = kNormalised) {
  ModelConfig config = small_model("decoder_lm", encoding, attention);
  config.length = 8;
  return config;
}

}  // namespace lagwise::testing
