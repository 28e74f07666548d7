// Feature maps as kernels see them: through read_state with S = identity, which
// hands back phi(q), and phi' through a Sink.

#include <cmath>
#include <limits>
#include <vector>

#include "lagwise/core/testing.h"
#include "lagwise/kernels/linear_attention.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::for_each_simd_target;
using lagwise::testing::Mat;

template <class T>
struct Mapped {
  Mat<T> value, slope;  // [N, 1]
};

/// phi(x) and phi'(x) of every number of a column.
template <class T>
Mapped<T> apply(const FeatureMap& map, const Mat<T>& x) {
  const Mat<T> one(1, 1, T{1}), ones(x.rows(), 1, T{1});
  Mapped<T> got{Mat<T>(x.rows(), 1), Mat<T>(x.rows(), 1)};
  std::vector<T> scratch(static_cast<size_t>(linear_scratch<T>(1, 1)));
  read_state<T>({x.view(), map}, {}, one.view(), {got.value.view()}, scratch.data());
  read_state<T>({ones.view()}, {}, one.view(), {got.slope.view(), x.view(), map},
                scratch.data());
  return got;
}

/// Numbers from -90 to 10, dense near 0.
template <class T>
Mat<T> ramp() {
  Mat<T> x(20001, 1);
  for (int64_t i = 0; i < x.rows(); ++i) {
    const double t = static_cast<double>(i) / 20000.0;
    x(i, 0) = static_cast<T>(i % 2 ? 10 * t : -90 * t * t);
  }
  return x;
}

template <class T>
void expect_elu1(double ulps) {
  const double tolerance =
      ulps * static_cast<double>(std::numeric_limits<T>::epsilon());
  const Mat<T> x = ramp<T>();
  for_each_simd_target([&] {
    const Mapped<T> got = apply<T>({FeatureMap::Kind::elu1}, x);
    for (int64_t i = 0; i < x.rows(); ++i) {
      const double at = x(i, 0), below = std::exp(std::max(std::min(at, 0.0), -87.0));
      ASSERT_NEAR(got.value(i, 0), at > 0 ? at + 1 : below,
                  tolerance * (below + at * (at > 0)))
          << "x = " << at;
      ASSERT_NEAR(got.slope(i, 0), below, tolerance * below) << "x = " << at;
    }
  });
}

TEST(FeatureMaps, Elu1IsAccurateToTheLastPlaces) { expect_elu1<float>(1.0); }

TEST(FeatureMaps, Elu1InDoubleIsAccurateToTheLastPlaces) {
  const Mat<double> x = ramp<double>();
  for_each_simd_target([&] {
    const auto got = apply<double>({FeatureMap::Kind::elu1}, x);
    for (int64_t i = 0; i < x.rows(); ++i) {
      const double want = x(i, 0) > 0 ? x(i, 0) + 1 : std::exp(x(i, 0));
      ASSERT_NEAR(got.value(i, 0), want, 1e-14 * want) << "x = " << x(i, 0);
    }
  });
}

TEST(FeatureMaps, ReluAddsItsOffsetAndPassesPositiveSlopes) {
  Mat<float> x(3, 1);
  x(0, 0) = -2, x(1, 0) = 0, x(2, 0) = 3;
  for_each_simd_target([&] {
    const auto got = apply<float>({FeatureMap::Kind::relu, 0.5}, x);
    EXPECT_EQ(got.value(0, 0), 0.5f);
    EXPECT_EQ(got.value(1, 0), 0.5f);
    EXPECT_EQ(got.value(2, 0), 3.5f);
    EXPECT_EQ(got.slope(0, 0), 0.0f);
    EXPECT_EQ(got.slope(1, 0), 0.0f);
    EXPECT_EQ(got.slope(2, 0), 1.0f);
  });
}

TEST(FeatureMaps, HandOnNanAndInfinity) {
  Mat<float> x(2, 1);
  x(0, 0) = std::numeric_limits<float>::quiet_NaN();
  x(1, 0) = std::numeric_limits<float>::infinity();
  for (auto kind :
       {FeatureMap::Kind::none, FeatureMap::Kind::elu1, FeatureMap::Kind::relu})
    for_each_simd_target([&] {
      const auto got = apply<float>({kind}, x);
      EXPECT_TRUE(std::isnan(got.value(0, 0)));
      EXPECT_TRUE(std::isinf(got.value(1, 0)));
    });
}

}  // namespace
}  // namespace lagwise::kernels
