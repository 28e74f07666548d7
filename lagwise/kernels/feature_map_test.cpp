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

/// The definition and its derivative.
struct Definition {
  const char* name;
  FeatureMap map;
  double (*value)(double);
  double (*slope)(double);
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const Definition kDefinitions[] = {
    {"none", {}, [](double x) { return x; }, [](double) { return 1.0; }},
    {"elu1",
     {FeatureMap::Kind::elu1},
     [](double x) { return x > 0 ? x + 1 : std::exp(x); },
     [](double x) { return x > 0 ? 1.0 : std::exp(x); }},
    {"relu",
     {FeatureMap::Kind::relu, 0.25},
     [](double x) { return std::max(x, 0.0) + 0.25; },
     [](double x) { return x > 0 ? 1.0 : 0.0; }},
    {"relu_squared",
     {FeatureMap::Kind::relu_squared, 0.25},
     [](double x) { return x > 0 ? x * x + 0.25 : 0.25; },
     [](double x) { return x > 0 ? 2 * x : 0.0; }},
    {"exp", {FeatureMap::Kind::exp}, std::exp, std::exp},
    {"silu",
     {FeatureMap::Kind::silu},
     [](double x) { return x * sigmoid(x); },
     [](double x) { return sigmoid(x) * (1 + x * sigmoid(-x)); }},
};

/// `x` cut into rows of any length, through map_rows and map_slopes with grad 3.
template <class T>
void expect_defined(const Definition& d, double from, double to, double tolerance) {
  constexpr int64_t kRows = 37, kCols = 29;  // no multiple of a vector
  for (auto storage : lagwise::testing::kEveryStorage) {
    SCOPED_TRACE(std::string(d.name) + ", " + lagwise::testing::name_of(storage));
    const auto x = Mat<T>::uniform(kRows, kCols, 1, from, to, storage);
    const Mat<T> grad(kRows, kCols, T{3}, storage);
    Mat<T> value(kRows, kCols, storage), slope(kRows, kCols, storage);
    map_rows<T>(d.map, x.view(), value.view());
    map_slopes<T>(d.map, x.view(), grad.view(), slope.view());
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kCols; ++j) {
        const double at = x(i, j), y = d.value(at), dy = 3 * d.slope(at);
        // Near its zero at -1.28 the slope of silu is a difference of like numbers.
        const double floor = 1e-2 * tolerance;
        ASSERT_NEAR(value(i, j), y, tolerance * std::abs(y) + floor) << "x = " << at;
        ASSERT_NEAR(slope(i, j), dy, tolerance * (std::abs(dy) + 0.3)) << "x = " << at;
      }
  }
}

TEST(FeatureMaps, AreTheirDefinitionsOnEverySimdTarget) {
  for (const Definition& d : kDefinitions)
    for_each_simd_target([&] {
      expect_defined<float>(d, -4, 4, 1e-6);
      expect_defined<float>(d, -80, 80, 1e-5);
      expect_defined<double>(d, -4, 4, 1e-14);
      expect_defined<double>(d, -80, 80, 1e-13);
    });
}

template <class T>
T exp_kernel(double x) {
  Mat<T> at(1, 1, static_cast<T>(x)), out(1, 1);
  map_rows<T>({FeatureMap::Kind::exp}, at.view(), out.view());
  return out(0, 0);
}

TEST(FeatureMaps, ExpReachesTheLargestNumberAndThenInfinity) {
  for_each_simd_target([] {
    for (double x : {87.9, 88.5, 88.7228})
      EXPECT_NEAR(exp_kernel<float>(x) / std::exp(static_cast<float>(x)), 1, 2e-7);
    EXPECT_EQ(exp_kernel<float>(88.73), std::numeric_limits<float>::infinity());
    EXPECT_EQ(exp_kernel<float>(1e30), std::numeric_limits<float>::infinity());
    for (double x : {699.9, 700.1, 709.7})
      EXPECT_NEAR(exp_kernel<double>(x) / std::exp(x), 1, 1e-13);
    EXPECT_EQ(exp_kernel<double>(709.79), std::numeric_limits<double>::infinity());
    EXPECT_GE(exp_kernel<float>(-1e30), 0.0f);
    EXPECT_LE(exp_kernel<float>(-1e30), 2e-38f);
    EXPECT_EQ(exp_kernel<double>(-1e30), 0.0);
  });
}

TEST(FeatureMaps, HandOnNanAndInfinity) {
  Mat<float> x(2, 1);
  x(0, 0) = std::numeric_limits<float>::quiet_NaN();
  x(1, 0) = std::numeric_limits<float>::infinity();
  for (const Definition& d : kDefinitions)
    for_each_simd_target([&] {
      const auto got = apply<float>(d.map, x);
      EXPECT_TRUE(std::isnan(got.value(0, 0))) << d.name;
      EXPECT_TRUE(std::isinf(got.value(1, 0))) << d.name;
    });
}

}  // namespace
}  // namespace lagwise::kernels
