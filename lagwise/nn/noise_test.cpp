#include "lagwise/nn/noise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <omp.h>

namespace lagwise::nn {
namespace {

TEST(NormalParameter, IsAFunctionOfSeedAndPlace) {
  const auto a = normal_parameter({70, 300}, 0.5, 3, 7);
  EXPECT_TRUE(a.equal(normal_parameter({70, 300}, 0.5, 3, 7)));
  EXPECT_FALSE(a.equal(normal_parameter({70, 300}, 0.5, 4, 7)));
  EXPECT_FALSE(a.equal(normal_parameter({70, 300}, 0.5, 3, 8)));
  EXPECT_TRUE(a.requires_grad());
  EXPECT_NEAR(a.std().item<double>(), 0.5, 0.02);
  EXPECT_NEAR(a.mean().item<double>(), 0.0, 0.02);
}

TEST(NormalParameter, HasTheSameBitsOnAnyNumberOfThreads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const auto one = normal_parameter({200, 300}, 1.0, 1, 1);
  omp_set_num_threads(4);
  EXPECT_TRUE(one.equal(normal_parameter({200, 300}, 1.0, 1, 1)));
  omp_set_num_threads(before);
}

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
