#include "lagwise/ops/cross_entropy.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <torch/csrc/autograd/autograd.h>

namespace lagwise::ops {
namespace {

using at::Tensor;

/// Torch's own, summed; its targets that do not count are -100.
Tensor torchs(const Tensor& scores, const Tensor& targets) {
  return at::cross_entropy_loss(scores.reshape({-1, scores.size(-1)}),
                                targets.reshape({-1}), {}, at::Reduction::Sum, -1);
}

Tensor some_targets(at::IntArrayRef sizes, int64_t classes) {
  return at::randint(-1, classes, sizes, at::kLong);
}

TEST(CrossEntropy, IsTorchsOwnWithItsGradient) {
  at::manual_seed(1);
  for (const auto type : {at::kFloat, at::kDouble})
    for (const int64_t rows : {1, 7, 200}) {
      const double tolerance = type == at::kFloat ? 1e-5 : 1e-12;
      const Tensor scores =
          at::randn({rows, 3, 37}, type).transpose(0, 1).set_requires_grad(true);
      const Tensor targets = some_targets({rows, 3}, 37).t();
      const CrossEntropy got = cross_entropy(scores, targets);
      const Tensor want = torchs(scores, targets);
      EXPECT_TRUE(at::allclose(got.sum, want, tolerance, tolerance));
      const auto ours = torch::autograd::grad({got.sum * 0.3}, {scores})[0];
      const auto theirs = torch::autograd::grad({want * 0.3}, {scores})[0];
      EXPECT_TRUE(at::allclose(ours, theirs, tolerance, tolerance));
      EXPECT_FALSE(got.each.requires_grad());
      EXPECT_TRUE(at::allclose(got.each.sum(), want, tolerance, tolerance));
      EXPECT_TRUE((got.each.masked_select(targets.lt(0)) == 0).all().item<bool>());
      EXPECT_EQ(got.right, (scores.argmax(-1) == targets).sum().item<int64_t>());
      const at::NoGradGuard no_graph;
      EXPECT_TRUE(cross_entropy(scores, targets).sum.equal(got.sum));
    }
}

TEST(CrossEntropy, GivesTheSameBitsOnAnyNumberOfThreads) {
  at::manual_seed(2);
  const Tensor scores = at::randn({1000, 50}).set_requires_grad(true);
  const Tensor targets = some_targets({1000}, 50);
  const int before = omp_get_max_threads();
  std::vector<std::vector<Tensor>> results;
  for (const int threads : {1, 2, 4}) {
    omp_set_num_threads(threads);
    const CrossEntropy loss = cross_entropy(scores, targets);
    results.push_back(
        {loss.sum, loss.each, torch::autograd::grad({loss.sum}, {scores})[0]});
  }
  omp_set_num_threads(before);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(results[0][i].equal(results[1][i])) << i;
    EXPECT_TRUE(results[0][i].equal(results[2][i])) << i;
  }
}

TEST(CrossEntropy, MayBeDifferentiatedTwiceInARowButNotTwiceOver) {
  const Tensor scores = at::randn({3, 4}).set_requires_grad(true);
  const Tensor sum = cross_entropy(scores, some_targets({3}, 4)).sum;
  const auto once = torch::autograd::grad({sum}, {scores}, {}, true)[0];
  EXPECT_TRUE(torch::autograd::grad({sum}, {scores}, {}, true)[0].equal(once));
  const auto first = torch::autograd::grad({sum}, {scores}, {}, true, true)[0];
  EXPECT_THROW(torch::autograd::grad({first.sum()}, {scores}), c10::Error);
}

TEST(CrossEntropy, TakesNothingAndRefusesWhatDoesNotFit) {
  const CrossEntropy none = cross_entropy(at::zeros({0, 5}), at::zeros({0}, at::kLong));
  EXPECT_EQ(none.sum.item<float>(), 0.0f);
  EXPECT_EQ(none.each.numel(), 0);
  const auto refuses = [](const Tensor& scores, const Tensor& targets) {
    EXPECT_THROW(cross_entropy(scores, targets), c10::Error);
  };
  refuses(at::zeros({2, 5}), at::zeros({3}, at::kLong));
  refuses(at::zeros({2, 5}), at::zeros({2}, at::kInt));
  refuses(at::zeros({2, 5}), at::full({2}, 5, at::kLong));
  refuses(at::zeros({2, 5}, at::kHalf), at::zeros({2}, at::kLong));
}

}  // namespace
}  // namespace lagwise::ops
