#include "lagwise/ops/short_convolution.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <torch/csrc/autograd/autograd.h>

namespace lagwise::ops {
namespace {

using at::Tensor;

/// In plain operators, which autograd differentiates.
Tensor plain(const Tensor& x, const Tensor& taps, const Tensor& before) {
  const int64_t reach = taps.size(0) - 1, n = x.size(1);
  const Tensor rows = at::cat({before, x}, 1);
  Tensor y = at::zeros_like(x);
  for (int64_t j = 0; j <= reach; ++j) y = y + rows.narrow(1, reach - j, n) * taps[j];
  return y;
}

struct Given {
  Tensor x, taps, before, dy;
};

Given drawn(int64_t batch, int64_t n, int64_t width, int64_t tokens,
            at::ScalarType type) {
  return {at::randn({batch, n, width}, type).set_requires_grad(true),
          at::randn({tokens, width}, type).set_requires_grad(true),
          at::randn({batch, tokens - 1, width}, type).set_requires_grad(true),
          at::randn({batch, n, width}, type)};
}

void expect_plain(const Given& given, double tolerance) {
  const auto& [x, taps, before, dy] = given;
  const Tensor got = short_convolution(x, taps, before), want = plain(x, taps, before);
  EXPECT_TRUE(at::allclose(got, want, tolerance, tolerance));
  const auto ours = torch::autograd::grad({got}, {x, taps, before}, {dy});
  const auto theirs = torch::autograd::grad({want}, {x, taps, before}, {dy});
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_TRUE(at::allclose(ours[i], theirs[i], tolerance, tolerance)) << i;
  const Tensor none = at::zeros_like(before);
  const Tensor alone = short_convolution(x, taps), start = plain(x, taps, none);
  EXPECT_TRUE(at::allclose(alone, start, tolerance, tolerance));
  const auto without = torch::autograd::grad({alone}, {x, taps}, {dy});
  const auto with = torch::autograd::grad({start}, {x, taps}, {dy});
  for (size_t i = 0; i < without.size(); ++i)
    EXPECT_TRUE(at::allclose(without[i], with[i], tolerance, tolerance)) << i;
}

TEST(ShortConvolutionOp, EqualsPlainOperatorsWithGradients) {
  at::manual_seed(1);
  for (const int64_t tokens : {1, 2, 4})
    for (const int64_t n : {1, 2, 5, 1500}) {
      expect_plain(drawn(2, n, 33, tokens, at::kDouble), 1e-11);
      expect_plain(drawn(3, n, 16, tokens, at::kFloat), 1e-3);
    }
}

TEST(ShortConvolutionOp, TakesNothing) {
  for (const auto& [batch, n, width] :
       {std::array<int64_t, 3>{0, 5, 4}, {2, 0, 4}, {2, 5, 0}})
    expect_plain(drawn(batch, n, width, 3, at::kDouble), 1e-12);
}

TEST(ShortConvolutionOp, HonoursStrides) {
  at::manual_seed(2);
  const Given dense = drawn(2, 9, 6, 4, at::kDouble);
  const auto strided = [](const Tensor& x) {
    return x.detach().transpose(0, -1).contiguous().transpose(0, -1);
  };
  expect_plain({strided(dense.x).set_requires_grad(true),
                strided(dense.taps).set_requires_grad(true),
                strided(dense.before).set_requires_grad(true), strided(dense.dy)},
               1e-12);
  const Tensor wide = at::randn({2, 9, 18}, at::kDouble);  // rows cut out of wider ones
  expect_plain({wide.narrow(2, 6, 6).set_requires_grad(true), dense.taps, dense.before,
                dense.dy},
               1e-12);
}

TEST(ShortConvolutionOp, GivesTheSameBitsOnAnyNumberOfThreads) {
  at::manual_seed(3);
  const auto [x, taps, before, dy] = drawn(3, 1700, 48, 4, at::kFloat);
  std::vector<std::vector<Tensor>> results;
  const int threads_before = omp_get_max_threads();
  for (const int threads : {1, 2, 4}) {
    omp_set_num_threads(threads);
    const Tensor y = short_convolution(x, taps, before);
    auto gradients = torch::autograd::grad({y}, {x, taps, before}, {dy});
    gradients.push_back(y);
    results.push_back(gradients);
  }
  omp_set_num_threads(threads_before);
  for (size_t i = 0; i < results[0].size(); ++i)
    for (size_t other : {1, 2})
      EXPECT_TRUE(results[0][i].equal(results[other][i])) << i;
}

TEST(ShortConvolutionOp, HasTheSameBitsHoweverASequenceIsCut) {
  at::manual_seed(4);
  const auto [x, taps, before, dy] = drawn(2, 1100, 20, 4, at::kFloat);
  const Tensor whole = short_convolution(x, taps, before);
  for (const int64_t at : {0, 1, 2, 3, 700, 1100}) {
    const Tensor rows = at::cat({before, x}, 1);
    const Tensor rest = short_convolution(x.slice(1, at), taps, rows.narrow(1, at, 3));
    EXPECT_TRUE(rest.equal(whole.slice(1, at))) << at;
  }
}

TEST(ShortConvolutionOp, SaysWhatIsWrong) {
  const auto message = [](const Tensor& x, const Tensor& taps, const Tensor& before) {
    try {
      short_convolution(x, taps, before);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string();
  };
  const Tensor x = at::zeros({2, 5, 3}), taps = at::zeros({4, 3});
  EXPECT_EQ(message(x[0], taps, {}),
            "short_convolution: expected x [B, N, W], got [5, 3]");
  EXPECT_EQ(message(x.to(at::kLong), taps, {}),
            "short_convolution: expected x of Float or Double, got Long");
  for (const Tensor& wrong : {at::zeros({4, 2}), at::zeros({0, 3}), at::zeros({3})})
    EXPECT_EQ(message(x, wrong, {}),
              "short_convolution: expected taps [K, W] with K > 0 and W = 3, got " +
                  c10::str(wrong.sizes()));
  EXPECT_EQ(message(x, taps.to(at::kDouble), {}),
            "short_convolution: expected taps of Float, got Double");
  EXPECT_EQ(message(x, taps, at::zeros({2, 4, 3})),
            "short_convolution: expected before [B, K - 1, W] = [2, 3, 3], got "
            "[2, 4, 3]");
}

}  // namespace
}  // namespace lagwise::ops
