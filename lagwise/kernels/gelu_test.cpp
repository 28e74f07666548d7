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
void expect_definition(double tolerance) {
  const std::vector<T> x = places<T>(), up(x.size(), T(-1.5));
  const auto count = static_cast<int64_t>(x.size());
  for_each_simd_target([&] {
    std::vector<T> y(x.size()), again(x.size()), dx(x.size());
    gelu(x.data(), count, y.data());
    gelu_gradient(x.data(), up.data(), count, again.data(), dx.data());
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

TEST(Gelu, WorksInPlace) {
  std::vector<float> x = places<float>(), apart(x.size()), up(x.size(), 2.0f);
  const auto count = static_cast<int64_t>(x.size());
  std::vector<float> y(x.size()), dx(x.size());
  gelu_gradient(x.data(), up.data(), count, y.data(), dx.data());
  gelu_gradient(x.data(), up.data(), count, apart.data(), up.data());
  EXPECT_EQ(up, dx);
  gelu(x.data(), count, x.data());
  EXPECT_EQ(x, y);
}

TEST(Gelu, HandsOnWhatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {NAN, kInf, 100.0f, -100.0f}, up(4, 1.0f);
  std::vector<float> y(4), dx(4);
  gelu_gradient(x.data(), up.data(), 4, y.data(), dx.data());
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
  gelu<float>(&x, 0, &y);
  gelu_gradient<float>(&x, &up, 0, &y, &dx);
  EXPECT_EQ(y, 3.0f);
  EXPECT_EQ(dx, 4.0f);
}

}  // namespace
}  // namespace lagwise::kernels
