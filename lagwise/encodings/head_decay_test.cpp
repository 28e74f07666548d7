#include "lagwise/encodings/head_decay.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lagwise {
namespace {

TEST(HeadDecay, KnowsTheSlopesOfAlibi) {
  EXPECT_EQ(alibi_slopes(8),
            (std::vector<double>{1. / 2, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1. / 64,
                                 1. / 128, 1. / 256}));
  EXPECT_EQ(alibi_slopes(6),
            (std::vector<double>{1. / 4, 1. / 16, 1. / 64, 1. / 256, 1. / 2, 1. / 8}));
  const std::vector<double> twelve = alibi_slopes(12);
  ASSERT_EQ(twelve.size(), 12u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_DOUBLE_EQ(twelve[8 + i], std::exp2(-0.5 - double(i)));
  EXPECT_EQ(alibi_slopes(1), std::vector<double>{1. / 256});
}

double log_factor(const char* kind, int64_t head, int64_t layer, int64_t layers) {
  return head_decay(kind, 4, layer, layers)[head].item<double>();
}

TEST(HeadDecay, FollowsEachPublishedSchedule) {
  EXPECT_NEAR(std::exp(log_factor("retnet", 2, 0, 1)), 1 - std::exp2(-7), 1e-15);
  EXPECT_NEAR(log_factor("alibi", 1, 3, 4), -1. / 16, 1e-15);
  EXPECT_NEAR(log_factor("lightning", 1, 0, 4), -(1 + 1e-5) / 16, 1e-15);
  EXPECT_NEAR(log_factor("lightning", 1, 2, 4), -(1. / 3 + 1e-5) / 16, 1e-15);
  EXPECT_NEAR(log_factor("lightning", 1, 3, 4), -1e-5 / 16, 1e-15);
  EXPECT_NEAR(log_factor("lightning", 1, 0, 1), -(1 + 1e-5) / 16, 1e-15);
  EXPECT_NEAR(log_factor("tnl", 0, 1, 4), -2 * 0.75, 1e-15);
  for (const std::string& kind : decay_kinds())
    for (int64_t layer = 0; layer < 4; ++layer)
      EXPECT_TRUE(head_decay(kind, 4, layer, 4).lt(0).all().item<bool>()) << kind;
}

TEST(Fade, HandsOverOneKernelAsADecayAndByLag) {
  Encoded e{.q = at::zeros({1, 2, 3, 4}, at::kDouble),
            .k = at::zeros({1, 2, 2, 4}, at::kDouble)};
  const at::Tensor log_factor = at::tensor({-0.5, -0.25}, at::kDouble);
  fade("x", e, log_factor, {.query_start = 5, .key_start = 7});
  EXPECT_TRUE(at::equal(e.decay, log_factor));
  const at::Tensor lag = at::arange(-3, 1, at::kDouble);  // -3 .. 0
  EXPECT_TRUE(at::equal(e.lag_bias, log_factor.unsqueeze(1) * lag.abs()));
  Encoded full{.q = e.q, .k = e.k};
  Placement at;
  at.causal = false;
  fade("x", full, log_factor, at);
  EXPECT_FALSE(full.decay.defined());
  EXPECT_TRUE(full.lag_bias.defined());
}

TEST(Fade, RefusesRowsThatDoNotStandOneAfterAnother) {
  Encoded e{.q = at::zeros({1, 2, 3, 4}), .k = at::zeros({1, 2, 3, 4})};
  const at::Tensor log_factor = at::tensor({-0.5, -0.25}, at::kDouble);
  Placement at;
  at.query_at = at::arange(3, at::kLong);
  EXPECT_THROW(fade("x", e, log_factor, at), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
