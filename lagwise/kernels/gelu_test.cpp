#include "lagwise/kernels/gelu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::for_each_simd_target;

double below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double slope(double x) {
  return below(x) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::acos(-1.0));
}

/// Densely from -12 to 12, and 0; never a whole number of vectors.
template <class T>
std::vector<T> places() {
  std::vector<T> x = {T{0}};
  for (int i = 0; i <= 2400; ++i) x.push_back(static_cast<T>(i - 1200) / 100);
  return x;
}

template <class T>
MatView<T> one_row(std::vector<T>& x) {
  const auto count = static_cast<int64_t>(x.size());
  return {x.data(), 1, count, count, 1};
}
template <class T>
MatView<const T> one_row(const std::vector<T>& x) {
  const auto count = static_cast<int64_t>(x.size());
  return {x.data(), 1, count, count, 1};
}

template <class T>
void expect_definition(double tolerance) {
  const std::vector<T> x = places<T>(), up(x.size(), T(-1.5)), none(x.size());
  for_each_simd_target([&] {
    std::vector<T> y(x.size()), again(x.size()), dx(x.size());
    gelu<T>(one_row(x), none.data(), one_row(y));
    gelu_gradient<T>(one_row(x), nullptr, one_row(up), one_row(again), one_row(dx));
    for (size_t i = 0; i < x.size(); ++i) {
      const auto at = static_cast<double>(x[i]);
      const double scale = std::max(1.0, std::abs(at));
      EXPECT_NEAR(y[i], at * below(at), tolerance * scale) << at;
      EXPECT_NEAR(dx[i], -1.5 * slope(at), 2 * tolerance * scale) << at;
      EXPECT_EQ(again[i], y[i]) << at;
    }
  });
}

TEST(Gelu, EqualsItsDefinition) {
  expect_definition<float>(2e-7);
  expect_definition<double>(1e-15);
}

/// Rows that do not lie side by side, each with the same bias.
template <class T>
void expect_bias_on_every_row() {
  constexpr int64_t kRows = 3, kCols = 21, kStep = 25;
  std::vector<T> x(kRows * kStep), bias(kCols), up(kRows * kStep, T{1});
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i % 13) / 5 - 1;
  for (size_t j = 0; j < bias.size(); ++j) bias[j] = static_cast<T>(j) / 7 - 2;
  for_each_simd_target([&] {
    std::vector<T> y(x.size(), T{7}), again = y, dx = y;
    gelu<T>({x.data(), kRows, kCols, kStep}, bias.data(),
            {y.data(), kRows, kCols, kStep});
    gelu_gradient<T>(
        {x.data(), kRows, kCols, kStep}, bias.data(), {up.data(), kRows, kCols, kStep},
        {again.data(), kRows, kCols, kStep}, {dx.data(), kRows, kCols, kStep});
    EXPECT_EQ(again, y);
    for (int64_t i = 0; i < kRows * kStep; ++i) {
      const auto at = static_cast<size_t>(i);
      if (i % kStep >= kCols) {
        EXPECT_EQ(y[at], T{7});
        EXPECT_EQ(dx[at], T{7});
        continue;
      }
      const double u = double(x[at] + bias[static_cast<size_t>(i % kStep)]);
      EXPECT_NEAR(y[at], u * below(u), 1e-6);
      EXPECT_NEAR(dx[at], slope(u), 1e-6);
    }
  });
}

TEST(Gelu, AddsTheBiasToEveryRow) {
  expect_bias_on_every_row<float>();
  expect_bias_on_every_row<double>();
}

TEST(Gelu, WorksInPlace) {
  std::vector<float> x = places<float>(), apart(x.size()), up(x.size(), 2.0f);
  const std::vector<float> none(x.size());
  std::vector<float> y(x.size()), dx(x.size());
  gelu_gradient<float>(one_row(x), none.data(), one_row(up), one_row(y), one_row(dx));
  gelu_gradient<float>(one_row(x), none.data(), one_row(up), one_row(apart),
                       one_row(up));
  EXPECT_EQ(up, dx);
  std::vector<float> both = x, ups(x.size(), 2.0f);
  gelu_gradient<float>(one_row(both), none.data(), one_row(ups), one_row(both),
                       one_row(ups));
  EXPECT_EQ(both, y);
  gelu<float>(one_row(x), none.data(), one_row(x));
  EXPECT_EQ(x, y);
}

TEST(Gelu, HandsOnWhatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {NAN, kInf, 100.0f, -100.0f}, up(4, 1.0f), none(4);
  std::vector<float> y(4), dx(4);
  gelu_gradient<float>(one_row(x), none.data(), one_row(up), one_row(y), one_row(dx));
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(dx[0]));
  EXPECT_EQ(y[1], kInf);
  EXPECT_EQ(y[2], 100.0f);
  EXPECT_EQ(dx[2], 1.0f);
  EXPECT_NEAR(y[3], 0.0f, 1e-30);
  EXPECT_NEAR(dx[3], 0.0f, 1e-30);
}

TEST(Gelu, TakesNothingAndWritesNothing) {
  const float x = 1.0f, up = 2.0f;
  float y = 3.0f, dx = 4.0f;
  for (const int64_t rows : {0, 1}) {
    const int64_t cols = 1 - rows;
    gelu<float>({&x, rows, cols, 1}, &x, {&y, rows, cols, 1});
    gelu_gradient<float>({&x, rows, cols, 1}, &x, {&up, rows, cols, 1},
                         {&y, rows, cols, 1}, {&dx, rows, cols, 1});
  }
  EXPECT_EQ(y, 3.0f);
  EXPECT_EQ(dx, 4.0f);
}

}  // namespace
}  // namespace lagwise::kernels
