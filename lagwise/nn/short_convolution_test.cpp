#include "lagwise/nn/short_convolution.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lagwise::nn {
namespace {

constexpr int64_t kTaps = 4, kWidth = 5;

/// With taps drawn at random, in double.
std::shared_ptr<ShortConvolution> drawn(int64_t tokens = kTaps) {
  auto made = std::make_shared<ShortConvolution>(tokens, kWidth);
  made->to(at::kDouble);
  const at::NoGradGuard no_graph;
  at::manual_seed(4);
  for (at::Tensor& taps : made->parameters()) taps.copy_(at::randn_like(taps));
  return made;
}

at::Tensor by_definition(const at::Tensor& x, const at::Tensor& taps) {
  const at::Tensor y = at::zeros_like(x);
  for (int64_t t = 0; t < x.size(1); ++t)
    for (int64_t j = 0; j < taps.size(0) && j <= t; ++j)
      y.select(1, t).add_(x.select(1, t - j) * taps[j]);
  return y;
}

TEST(ShortConvolution, LetsRowsPassAtFirst) {
  const ShortConvolution made(kTaps, kWidth);
  const at::Tensor x = at::randn({2, 7, kWidth});
  EXPECT_TRUE(made.forward(x).equal(x));
}

/// The rows before may be given, as a rank that shares a sequence has them from others.
TEST(ShortConvolution, GoesOnAfterTheRowsBefore) {
  const auto made = drawn();
  const at::Tensor x = at::randn({2, 9, kWidth}, at::kDouble);
  ASSERT_EQ(made->reach(), kTaps - 1);
  const at::Tensor got = made->forward(x.slice(1, 5), x.slice(1, 5 - made->reach(), 5));
  EXPECT_TRUE(got.equal(made->forward(x).slice(1, 5)));
}

TEST(ShortConvolution, IsItsDefinitionForAnyNumberOfRows) {
  for (const int64_t tokens : {1, 2, 4})
    for (const int64_t n : {0, 1, 3, 9}) {
      const auto made = drawn(tokens);
      const at::Tensor x = at::randn({2, n, kWidth}, at::kDouble);
      const at::Tensor want = by_definition(x, made->parameters()[0].detach());
      EXPECT_TRUE(at::allclose(made->forward(x), want, 1e-12, 1e-12));
      const at::Tensor strided =
          x.transpose(1, 2).contiguous().transpose(1, 2);  // the same, other strides
      EXPECT_TRUE(at::allclose(made->forward(strided), want, 1e-12, 1e-12));
    }
}

TEST(ShortConvolution, GoesOnFromItsRecentRowsInAnySplit) {
  const at::NoGradGuard no_graph;
  const auto made = drawn();
  const at::Tensor x = at::randn({2, 12, kWidth}, at::kDouble), want = made->forward(x);
  const std::vector<std::vector<int64_t>> splits = {
      {1, 2, 3, 4, 12}, {5, 6, 12}, {0, 12}};
  for (const std::vector<int64_t>& ends : splits) {
    at::Tensor recent;
    int64_t begin = 0;
    for (const int64_t end : ends) {
      const at::Tensor got = made->extend(recent, x.slice(1, begin, end), {});
      EXPECT_TRUE(at::allclose(got, want.slice(1, begin, end), 1e-12, 1e-12));
      EXPECT_EQ(recent.sizes(), at::IntArrayRef({2, kTaps - 1, kWidth}));
      EXPECT_EQ(recent.storage().nbytes(),
                recent.nbytes());  // no longer past behind it
      begin = end;
    }
  }
}

TEST(ShortConvolution, GoesOnFromTheLastRealRowOfEachSequence) {
  const at::NoGradGuard no_graph;
  const auto made = drawn();
  const at::Tensor x = at::randn({3, 6, kWidth}, at::kDouble);
  const at::Tensor next = at::randn({3, 2, kWidth}, at::kDouble);
  const at::Tensor lengths = at::tensor(std::vector<int64_t>{6, 0, 2}, at::kLong);
  at::Tensor recent;
  made->extend(recent, x, lengths);
  const at::Tensor got = made->extend(recent, next, {});
  for (int64_t b = 0; b < 3; ++b) {
    const auto real = lengths[b].item<int64_t>();
    const at::Tensor whole =
        at::cat({x.narrow(0, b, 1).narrow(1, 0, real), next.narrow(0, b, 1)}, 1);
    const at::Tensor want = made->forward(whole).narrow(1, real, 2);
    EXPECT_TRUE(at::allclose(got.narrow(0, b, 1), want, 1e-12, 1e-12)) << b;
  }
}

TEST(ShortConvolution, HasTheGradientsOfItsDefinition) {
  const auto made = drawn();
  const at::Tensor x = at::randn({2, 6, kWidth}, at::kDouble).requires_grad_(true);
  const at::Tensor weight = at::randn({2, 6, kWidth}, at::kDouble);
  (made->forward(x) * weight).sum().backward();
  const at::Tensor taps = made->parameters()[0];
  const auto loss = [&](const at::Tensor& rows, const at::Tensor& by) {
    return (by_definition(rows, by) * weight).sum().item<double>();
  };
  const at::NoGradGuard no_graph;
  for (const at::Tensor& one : {x, taps}) {
    const at::Tensor d = at::randn_like(one) * 1e-3;
    const bool rows = one.is_same(x);
    const double up = rows ? loss(x + d, taps) : loss(x, taps + d);
    const double down = rows ? loss(x - d, taps) : loss(x, taps - d);
    EXPECT_NEAR((one.grad() * d).sum().item<double>(), (up - down) / 2, 1e-10);
  }
}

}  // namespace
}  // namespace lagwise::nn
