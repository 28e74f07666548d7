#include "lagwise/kernels/rms_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lagwise/core/noise.h"
#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::expect_close;
using lagwise::testing::for_each_simd_target;
using lagwise::testing::Mat;

constexpr double kEps = 1e-5;

template <class T>
Mat<T> random(int64_t rows, int64_t cols, int64_t stream) {
  Mat<T> x(rows, cols);
  const Noise noise(7, stream);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      x(i, j) = static_cast<T>(noise.at({.head = i}).normal(j));
  return x;
}

/// The definition in double.
struct Reference {
  Mat<double> y, dx, dgain;
  double steepest = 0;  // the largest r dy gain: the terms of dx may cancel
  template <class T>
  Reference(const Mat<T>& x, const Mat<T>& gain, const Mat<T>& dy)
      : y(x.rows(), x.cols()),
        dx(x.rows(), x.cols()),
        dgain(gain.rows(), x.cols(), 0.0) {
    const auto cols = static_cast<double>(x.cols());
    for (int64_t i = 0; i < x.rows(); ++i) {
      const int64_t g = i % gain.rows();
      double squares = 0, dot = 0;
      for (int64_t j = 0; j < x.cols(); ++j) {
        squares += double(x(i, j)) * double(x(i, j));
        dot += double(dy(i, j)) * double(gain(g, j)) * double(x(i, j));
      }
      const double r = 1 / std::sqrt(squares / cols + kEps);
      for (int64_t j = 0; j < x.cols(); ++j) {
        y(i, j) = x(i, j) * r * gain(g, j);
        steepest = std::max(steepest, std::abs(r * dy(i, j) * gain(g, j)));
        dx(i, j) = r * (dy(i, j) * gain(g, j) - x(i, j) * r * r * dot / cols);
        dgain(g, j) += dy(i, j) * x(i, j) * r;
      }
    }
  }
};

template <class T>
void expect_reference(int64_t rows, int64_t cols, int64_t groups, double tolerance) {
  const Mat<T> x = random<T>(rows, cols, 1), dy = random<T>(rows, cols, 2),
               gain = random<T>(groups, cols, 3);
  const Reference want(x, gain, dy);
  for_each_simd_target([&] {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    Mat<T> y(rows, cols, nan), dx(rows, cols, nan), dgain(groups, cols, T{0});
    std::vector<T> r(static_cast<size_t>(rows), nan);
    rms_norm<T>(x.view(), gain.view(), kEps, y.view(), r.data());
    rms_norm_gradient<T>(x.view(), gain.view(), r.data(), dy.view(), {}, dx.view(),
                         dgain.view());
    expect_close(y, want.y, tolerance);
    expect_close(dx, want.dx, tolerance, tolerance * want.steepest);
    Mat<T> on_top = dx, unused(groups, cols, T{0});
    rms_norm_gradient<T>(x.view(), gain.view(), r.data(), dy.view(), on_top.view(),
                         on_top.view(), unused.view());
    Mat<double> twice = want.dx;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) twice(i, j) *= 2;
    expect_close(on_top, twice, tolerance, 2 * tolerance * want.steepest);
    expect_close(dgain, want.dgain, tolerance);
  });
}

TEST(RmsNorm, EqualsItsDefinition) {
  for (const int64_t cols : {1, 2, 7, 8, 16, 17, 64, 100, 512}) {
    for (const int64_t groups : {1, 3}) {
      expect_reference<float>(7, cols, groups, 2e-6);
      expect_reference<double>(7, cols, groups, 4e-15);
    }
  }
}

TEST(RmsNorm, GivesZerosForARowOfZeros) {
  Mat<float> x(1, 9, 0.0F), gain(1, 9, 2.0F), y(1, 9, 1.0F);
  float r = 0;
  rms_norm<float>(x.view(), gain.view(), kEps, y.view(), &r);
  for (int64_t j = 0; j < 9; ++j) EXPECT_EQ(y(0, j), 0.0F);
  EXPECT_NEAR(r, 1 / std::sqrt(kEps), 1e-2);
}

TEST(RmsNorm, AddsToTheGradientOfTheGain) {
  const Mat<double> x = random<double>(4, 11, 1), dy = random<double>(4, 11, 2),
                    gain = random<double>(1, 11, 3);
  Mat<double> y(4, 11), dx(4, 11), whole(1, 11, 0.0), parts(1, 11, 0.0);
  std::vector<double> r(4);
  rms_norm<double>(x.view(), gain.view(), kEps, y.view(), r.data());
  rms_norm_gradient<double>(x.view(), gain.view(), r.data(), dy.view(), {}, dx.view(),
                            whole.view());
  for (const int64_t begin : {0, 2})
    rms_norm_gradient<double>(x.view().slice(begin, begin + 2), gain.view(),
                              r.data() + begin, dy.view().slice(begin, begin + 2), {},
                              dx.view().slice(begin, begin + 2), parts.view());
  expect_close(parts, whole, 1e-14);
}

}  // namespace
}  // namespace lagwise::kernels
