#include "bench/naive_relative.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lagwise/ops/exact_attention.h"

namespace lagwise::bench {
namespace {

struct Rows {
  at::Tensor q = at::randn({1, 3, 50, 8}, at::kDouble);
  at::Tensor k = at::randn({1, 3, 50, 8}, at::kDouble);
  at::Tensor v = at::randn({1, 3, 50, 8}, at::kDouble);
};

TEST(NaiveRelative, TheBiasedOneIsExactAttention) {
  const Rows x;
  ops::ExactOptions options;
  options.lag_bias = at::randn({3, 99}, at::kDouble);
  options.scale = 0.3;
  const at::Tensor ours = ops::exact_attention(x.q, x.k, x.v, options);
  EXPECT_TRUE(at::allclose(
      ours, naive_biased(x.q, x.k, x.v, spread_bias(options.lag_bias), 0.3)));
}

TEST(NaiveRelative, TheSkewedOneIsExactAttention) {
  const Rows x;
  const at::Tensor e = at::randn({50, 8}, at::kDouble);
  ops::ExactOptions options;
  options.causal = true;
  // Lags -49 .. -1 are hidden; 0 .. 49 stand in e from its last row up.
  options.lag_keys =
      at::cat({at::zeros({49, 8}, at::kDouble), e.flip({0})}, 0).unsqueeze(0);
  const at::Tensor ours = ops::exact_attention(x.q, x.k, x.v, options);
  EXPECT_TRUE(at::allclose(ours, skewed_huang(x.q, x.k, x.v, e)));
}

}  // namespace
}  // namespace lagwise::bench
