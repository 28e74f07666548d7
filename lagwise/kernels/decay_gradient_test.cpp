#include "lagwise/kernels/decay_gradient.h"

#include <cmath>
#include <limits>
#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::expect_close;
using lagwise::testing::for_each_simd_target;
using lagwise::testing::Mat;
using lagwise::testing::Storage;

/// Against the recurrence of the header, token by token in f64. Positive numbers, so
/// that the moment is no small difference of large sums.
template <class T>
void expect_as_defined(int64_t n, int64_t d, int64_t e, bool shared, Storage storage) {
  const FeatureMap map{FeatureMap::Kind::elu1};
  const auto q = Mat<T>::uniform(n, d, 1, 0, 1, storage);
  const auto k = Mat<T>::uniform(n, d, 2, 0, 1, storage);
  const auto v = Mat<T>::uniform(n, e, 3, 0, 1, storage);
  const auto at = Mat<T>::uniform(n, e, 4, -1, 1, storage);
  const auto s0 = Mat<T>::uniform(d, e, 5, 0, 1),
             slope0 = Mat<T>::uniform(d, e, 6, 0, 1);
  const auto log_factor = Mat<T>::uniform(1, e, 7, -0.3, 0);
  MatView<const T> factors = log_factor.view();
  if (shared) factors.col_step = 0;

  Mat<double> s(d, e, 0.0), slope(d, e, 0.0), moment(1, e, 0.0);
  for (int64_t c = 0; c < e; ++c) {
    const double g = std::exp(double{factors(0, c)});
    for (int64_t r = 0; r < d; ++r) s(r, c) = s0(r, c), slope(r, c) = slope0(r, c);
    for (int64_t i = 0; i < n; ++i) {
      double o = 0;
      for (int64_t r = 0; r < d; ++r) {
        slope(r, c) = g * (slope(r, c) + s(r, c));
        s(r, c) = g * s(r, c) + double{k(i, r)} * v(i, c);
        o += q(i, r) * slope(r, c);
      }
      const double x = at(i, c);
      moment(0, c) += (x > 0 ? x + 1 : std::exp(x)) * o;
    }
  }
  for_each_simd_target([&] {
    Mat<T> got_s(s0), got_slope(slope0);
    Mat<double> got(1, e, 0.0);
    std::vector<T> scratch(static_cast<size_t>(decay_gradient_scratch<T>(d, e)),
                           std::numeric_limits<T>::quiet_NaN());
    const Decay<T> decay{Decay<T>::By::column, factors};
    decay_gradient<T>({q.view()}, {k.view()}, {v.view()}, decay, got_s.view(),
                      got_slope.view(), at.view(), map, got.data(), scratch.data());
    const double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-12;
    expect_close(got, moment, tolerance);
    expect_close(got_s, s, tolerance);
    expect_close(got_slope, slope, tolerance);
  });
}

TEST(DecayGradient, CountsTheStepsOfEveryTerm) {
  for (int64_t n : {0, 1, 2, 15, 16, 17, 32, 33, 100})
    for (int64_t d : {1, 7, 33})
      for (int64_t e : {1, 16, 40})
        for (bool shared : {false, true}) {
          expect_as_defined<float>(n, d, e, shared, Storage::dense);
          expect_as_defined<double>(n, d, e, shared, Storage::dense);
        }
  for (Storage storage : lagwise::testing::kEveryStorage)
    expect_as_defined<float>(50, 9, 20, false, storage);
}

}  // namespace
}  // namespace lagwise::kernels
