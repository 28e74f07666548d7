#pragma once

// Support for the tests of models; never part of the library.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "lagwise/core/noise.h"
#include "lagwise/models/model.h"

namespace lagwise::testing {

inline constexpr const char* kNormalised = "linear:map=elu1";
inline constexpr const char* kSigned =
    "linear:map=none,denominator=none,norm=rms_head,qk_bias=true";

/// Tokens [rows, cols] in [0, vocabulary).
inline at::Tensor random_tokens(int64_t rows, int64_t cols, int64_t vocabulary,
                                uint64_t seed = 1) {
  at::Tensor x = at::empty({rows, cols}, at::kLong);
  const NoiseRow row = Noise(seed, streams::kData).at({});
  for (int64_t i = 0; i < rows * cols; ++i)
    x.data_ptr<int64_t>()[i] =
        static_cast<int64_t>(row.uniform(i) * static_cast<double>(vocabulary));
  return x;
}

inline at::Tensor whole(std::initializer_list<int64_t> numbers) {
  return at::tensor(std::vector<int64_t>(numbers), at::kLong);
}

inline Batch batch_of(const at::Tensor& tokens, const at::Tensor& lengths = {}) {
  Batch batch;
  batch.tokens = tokens, batch.lengths = lengths;
  return batch;
}

/// Small, with heads of 8 and an odd number of everything else.
inline ModelConfig small_model(const std::string& model, const std::string& encoding,
                               const std::string& attention) {
  ModelConfig config;
  config.model = model, config.encoding = encoding, config.attention = attention;
  config.vocabulary = 11, config.classes = 3, config.layers = 2;
  config.dim = 16, config.heads = 2, config.feed_forward = 24;
  config.length = 64, config.seed = 5;
  return config;
}

/// The largest difference, relative to the largest number wanted.
inline void expect_same(const at::Tensor& got, const at::Tensor& want,
                        double tolerance = 1e-4) {
  ASSERT_EQ(got.sizes(), want.sizes());
  const double error = (got - want).abs().max().item<double>();
  EXPECT_LE(error, tolerance * want.abs().max().item<double>());
  EXPECT_TRUE(at::isfinite(want).all().item<bool>());
}

/// Every parameter has a finite gradient that is not all zero.
inline void expect_gradients(const torch::nn::Module& model) {
  for (const auto& parameter : model.named_parameters()) {
    SCOPED_TRACE(parameter.key());
    const at::Tensor gradient = parameter.value().grad();
    ASSERT_TRUE(gradient.defined());
    EXPECT_TRUE(at::isfinite(gradient).all().item<bool>());
    EXPECT_GT(gradient.abs().max().item<double>(), 0);
  }
}

/// What `act` throws as std::invalid_argument; one line.
template <class Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

}  // namespace lagwise::testing
