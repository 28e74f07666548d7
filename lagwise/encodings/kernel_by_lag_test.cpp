#include "lagwise/encodings/kernel_by_lag.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lagwise {
namespace {

at::Tensor kernel(const char* text, int64_t lags) {
  const auto encoding = make_encoding(text, {.heads = 2, .dim = 4});
  return kernel_by_lag(*encoding, lags, {}, {0, 1, encoding->layer(0, 1)});
}

TEST(KernelByLag, IsOneWithoutPositions) {
  EXPECT_TRUE(at::allclose(kernel("none", 5), at::ones({2, 5}, at::kDouble)));
}

TEST(KernelByLag, IsTheMeanCosineOfARotation) {
  const at::Tensor got = kernel("rope:layout=half", 400);
  for (const int64_t lag : {0, 1, 7, 399})
    EXPECT_NEAR(got[1][lag].item<double>(),
                0.5 * (std::cos(double(lag)) + std::cos(0.01 * double(lag))), 1e-12);
}

TEST(KernelByLag, SeesAPermutation) {
  const auto encoding =
      make_encoding("lrpe:lambda=permutation", {.heads = 1, .dim = 32});
  const at::Tensor got = kernel_by_lag(*encoding, 3, {}, {});
  EXPECT_NEAR(got[0][0].item<double>(), 1, 1e-12);
  EXPECT_LT(got[0][1].item<double>(), 0.99);
}

TEST(KernelByLag, FadesWithADecayWhicheverEncodingHasIt) {
  const at::Tensor fade = kernel("decay:kind=alibi", 100);
  EXPECT_LT(fade[0][99].item<double>(), 0.01);
  EXPECT_TRUE(at::allclose(kernel("alibi", 100), fade));
  for (const std::string text : {"sinusoidal:", "lrpe:", "sine_spe:noise=exact,"})
    EXPECT_TRUE(at::allclose(kernel((text + "decay=alibi").c_str(), 100),
                             kernel((text + "decay=none").c_str(), 100) * fade))
        << text;
}

TEST(KernelByPair, IsAFunctionOfTheLagForARotation) {
  const auto encoding = make_encoding("rope:layout=half", {.heads = 2, .dim = 8});
  const at::Tensor pairs = kernel_by_pair(*encoding, 9, 7, {}, {});
  const at::Tensor lags = kernel_by_lag(*encoding, 9, {}, {});
  ASSERT_EQ(pairs.sizes(), at::IntArrayRef({2, 9, 7}));
  for (int64_t i = 0; i < 9; ++i)
    for (int64_t j = 0; j <= std::min<int64_t>(i, 6); ++j)
      EXPECT_NEAR(pairs[1][i][j].item<double>(), lags[1][i - j].item<double>(), 1e-12);
}

TEST(KernelByPair, OfAnAbsoluteCodeIsTheProductOfWhatIsAdded) {
  const auto encoding = make_encoding("sinusoidal", {.heads = 2, .dim = 8});
  const at::Tensor pairs = kernel_by_pair(*encoding, 5, 6, {}, {});
  ASSERT_EQ(pairs.sizes(), at::IntArrayRef({2, 5, 6}));
  EXPECT_NEAR(pairs[0][4][5].item<double>(), pairs[1][2][1].item<double>(), 1e-6);
  EXPECT_NEAR(pairs[0][3][3].item<double>(), 1, 1e-6);
}

TEST(KernelByLag, IsThePowerOfADecay) {
  const at::Tensor got = kernel("decay:kind=retnet", 400);
  for (const int64_t lag : {0, 1, 7, 399})
    EXPECT_NEAR(got[1][lag].item<double>(), std::pow(1 - std::exp2(-6), double(lag)),
                1e-12);
}

TEST(KernelByLag, IsTheProductOfWhatIsAddedToTheInput) {
  const at::Tensor got = kernel("sinusoidal", 10);
  double want = 0;
  for (int j = 0; j < 4; ++j) want += 0.25 * std::cos(9 * std::pow(10000., -j / 4.));
  EXPECT_NEAR(got[0][9].item<double>(), want, 1e-12);
}

TEST(PairScores, AddLagTablesByTheirColumn) {
  Encoded e{.q = at::ones({1, 2, 3, 4}, at::kDouble),
            .k = at::ones({1, 2, 2, 4}, at::kDouble),
            .scale = 0.5};
  e.lag_bias = at::arange(8, at::kDouble).view({2, 4});
  e.lag_keys = at::arange(4, at::kDouble).view({1, 4, 1}).expand({1, 4, 4});
  const at::Tensor s = pair_scores(e);
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 2; ++j)
        EXPECT_NEAR(s[0][h][i][j].item<double>(),
                    0.5 * (4 + 4. * double(i - j + 1)) + double(4 * h + i - j + 1),
                    1e-12);
}

}  // namespace
}  // namespace lagwise
