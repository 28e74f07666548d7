#include "lagwise/ops/rms_norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <torch/csrc/autograd/autograd.h>

namespace lagwise::ops {
namespace {

using at::Tensor;

constexpr double kEps = 1e-5;

/// In plain operators, which autograd differentiates.
Tensor plain(const Tensor& x, const Tensor& gain) {
  return x * at::rsqrt(x.square().mean(-1, true) + kEps) * gain;
}

/// `axes`: how many of the last axes the gain has.
void expect_plain(at::IntArrayRef sizes, at::ScalarType type, double tolerance,
                  size_t axes = 1) {
  const Tensor x = at::randn(sizes, type).set_requires_grad(true);
  const Tensor gain =
      at::randn(sizes.slice(sizes.size() - axes), type).set_requires_grad(true);
  const Tensor dy = at::randn(sizes, type);
  const Tensor got = rms_norm(x, gain, kEps), want = plain(x, gain);
  EXPECT_TRUE(at::allclose(got, want, tolerance, tolerance));
  const auto ours = torch::autograd::grad({got}, {x, gain}, {dy});
  const auto theirs = torch::autograd::grad({want}, {x, gain}, {dy});
  for (size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(at::allclose(ours[i], theirs[i], tolerance, tolerance)) << i;
}

TEST(RmsNormOp, EqualsPlainOperatorsWithGradients) {
  at::manual_seed(1);
  for (const int64_t rows : {1, 3, 700}) {
    expect_plain({rows, 33}, at::kDouble, 1e-10);
    expect_plain({2, rows, 64}, at::kFloat, 1e-4);
  }
  expect_plain({5}, at::kDouble, 1e-12);
  expect_plain({0, 5}, at::kDouble, 1e-12);
}

TEST(RmsNormOp, GivesGroupsOfRowsGainsOfTheirOwn) {
  at::manual_seed(4);
  for (const int64_t rows : {1, 9, 1400}) {
    expect_plain({rows, 3, 33}, at::kDouble, 1e-10, 2);
    expect_plain({2, rows, 4, 16}, at::kFloat, 1e-4, 2);
  }
  expect_plain({3, 5}, at::kDouble, 1e-12, 2);
  expect_plain({0, 3, 5}, at::kDouble, 1e-12, 2);
}

TEST(RmsNormOp, HonoursStrides) {
  at::manual_seed(2);
  const Tensor leaf = at::randn({6, 4, 3}, at::kDouble).set_requires_grad(true);
  const Tensor gain = at::randn({12}, at::kDouble).slice(0, 0, 12, 2);
  const Tensor x = leaf.transpose(0, 2), dy = at::randn({6, 4, 3}, at::kDouble);
  const Tensor got = rms_norm(x, gain, kEps), want = plain(x, gain);
  EXPECT_TRUE(at::allclose(got, want, 1e-12, 1e-12));
  const Tensor ours = torch::autograd::grad({got}, {leaf}, {dy.transpose(0, 2)})[0];
  const Tensor theirs = torch::autograd::grad({want}, {leaf}, {dy.transpose(0, 2)})[0];
  EXPECT_TRUE(at::allclose(ours, theirs, 1e-10, 1e-10));
}

TEST(RmsNormOp, GivesTheSameBitsOnAnyNumberOfThreads) {
  at::manual_seed(3);
  const Tensor x = at::randn({3000, 48}).set_requires_grad(true);
  const Tensor gain = at::randn({48}).set_requires_grad(true),
               dy = at::randn({3000, 48});
  std::vector<std::vector<Tensor>> results;
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 4}) {
    omp_set_num_threads(threads);
    const Tensor y = rms_norm(x, gain, kEps);
    auto gradients = torch::autograd::grad({y}, {x, gain}, {dy});
    gradients.push_back(y);
    results.push_back(gradients);
  }
  omp_set_num_threads(before);
  for (size_t i = 0; i < results[0].size(); ++i)
    for (size_t other : {1, 2})
      EXPECT_TRUE(results[0][i].equal(results[other][i])) << i;
}

TEST(RmsNormOp, SaysWhatIsWrong) {
  const auto message = [](const Tensor& x, const Tensor& gain) {
    try {
      rms_norm(x, gain, kEps);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string();
  };
  EXPECT_EQ(
      message(at::zeros({2, 3}), at::zeros({4})),
      "rms_norm: expected x [.., C] and gain [C], or x [.., G, C] and gain [G, C], "
      "got [2, 3] and [4]");
  EXPECT_EQ(message(at::zeros({2, 3}), at::zeros({3}, at::kDouble)),
            "rms_norm: expected gain of Float, got Double");
  EXPECT_EQ(message(at::zeros({2, 3}, at::kLong), at::zeros({3})),
            "rms_norm: expected x of Float or Double, got Long");
}

}  // namespace
}  // namespace lagwise::ops
