#include "lagwise/nn/dropout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lagwise::nn {
namespace {

TEST(Dropout, LeavesOutThatShareAndKeepsTheMean) {
  const auto x = at::ones({100, 400});
  const auto y = dropout(x, 0.25, {.seed = 1, .step = 5}, 3);
  EXPECT_NEAR(y.eq(0).to(at::kFloat).mean().item<double>(), 0.25, 0.01);
  EXPECT_NEAR(y.mean().item<double>(), 1.0, 0.02);
}

TEST(Dropout, ChangesWithTheStepAndThePlace) {
  const auto x = at::ones({64, 64});
  const auto y = dropout(x, 0.5, {.seed = 1, .step = 5}, 3);
  EXPECT_TRUE(y.equal(dropout(x, 0.5, {.seed = 1, .step = 5}, 3)));
  EXPECT_FALSE(y.equal(dropout(x, 0.5, {.seed = 1, .step = 6}, 3)));
  EXPECT_FALSE(y.equal(dropout(x, 0.5, {.seed = 1, .step = 5}, 4)));
  EXPECT_TRUE(dropout(x, 0.0, {}, 3).is_same(x));
}

}  // namespace
}  // namespace lagwise::nn
