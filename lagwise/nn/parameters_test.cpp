#include "lagwise/nn/parameters.h"

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

TEST(WithoutValues, LeavesParametersUnsetWhileItLives) {
  {
    const WithoutValues lent;
    const auto unset = normal_parameter({3, 4}, 1.0, 1, 1);
    EXPECT_TRUE(unset.requires_grad());
    EXPECT_EQ(unset.sizes(), (at::IntArrayRef{3, 4}));
  }
  const auto set = normal_parameter({3, 4}, 1.0, 1, 1);
  EXPECT_TRUE(set.equal(normal_parameter({3, 4}, 1.0, 1, 1)));
  EXPECT_GT(set.std().item<double>(), 0.1);
}

TEST(Holder, SharesTensorsAndTrainsThem) {
  const at::Tensor x = at::ones({2});
  const Holder holder({{"gate", x}});
  EXPECT_TRUE(x.requires_grad());
  EXPECT_TRUE(holder.named_parameters()["gate"].is_same(x));
}

}  // namespace
}  // namespace lagwise::nn
