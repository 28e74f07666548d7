#include "lagwise/kernels/short_convolution.h"

#include <limits>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::expect_close;
using lagwise::testing::for_each_simd_target;
using lagwise::testing::Mat;

/// The definition in double: every pair of a row and a tap.
struct Reference {
  Mat<double> y, dx, dbefore, dtaps;
  template <class T>
  Reference(const Mat<T>& before, const Mat<T>& x, const Mat<T>& taps, const Mat<T>& dy)
      : y(x.rows(), x.cols(), 0.0),
        dx(x.rows(), x.cols(), 0.0),
        dbefore(before.rows(), x.cols(), 0.0),
        dtaps(taps.rows(), x.cols(), 0.0) {
    for (int64_t t = 0; t < x.rows(); ++t)
      for (int64_t j = 0; j < taps.rows(); ++j)
        for (int64_t c = 0; c < x.cols(); ++c) {
          const int64_t earlier = before.rows() + t - j;  // the row of before, if t < j
          const double row = t < j ? double(before(earlier, c)) : double(x(t - j, c));
          y(t, c) += row * double(taps(j, c));
          dtaps(j, c) += row * double(dy(t, c));
          (t < j ? dbefore(earlier, c) : dx(t - j, c)) +=
              double(taps(j, c)) * double(dy(t, c));
        }
  }
};

template <class T>
void expect_reference(int64_t rows, int64_t cols, int64_t tokens, double tolerance) {
  const auto drawn = [&](int64_t many, uint64_t seed) {
    return Mat<T>::uniform(many, cols, seed, -1, 1);
  };
  const Mat<T> before = drawn(tokens - 1, 1), x = drawn(rows, 2),
               taps = drawn(tokens, 3), dy = drawn(rows, 4);
  const Reference want(before, x, taps, dy);
  const Mat<T> none(tokens - 1, cols, T{0});
  const Reference alone(none, x, taps, dy);
  for_each_simd_target([&] {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    Mat<T> y(rows, cols, nan), dx(rows, cols, nan), dbefore(tokens - 1, cols, nan),
        dtaps(tokens, cols, T{0});
    short_convolution<T>(before.view(), x.view(), taps.view(), y.view());
    expect_close(y, want.y, tolerance);
    short_convolution_gradient<T>(x.view(), taps.view(), dy.view(), 0, dx.view(),
                                  dtaps.view());
    expect_close(dx, want.dx, tolerance);
    expect_close(dtaps, alone.dtaps, tolerance);
    short_convolution_gradient<T>(before.view(), taps.view(), dy.view(), 1 - tokens,
                                  dbefore.view(), dtaps.view());
    expect_close(dbefore, want.dbefore, tolerance);
    expect_close(dtaps, want.dtaps, tolerance);
    short_convolution<T>({}, x.view(), taps.view(), y.view());
    expect_close(y, alone.y, tolerance);
  });
}

TEST(ShortConvolutionKernel, IsItsDefinitionForAnyShape) {
  for (const int64_t tokens : {1, 2, 4, 7})
    for (const int64_t rows : {0, 1, 2, 3, 9})
      for (const int64_t cols : {1, 8, 37, 64}) {
        expect_reference<double>(rows, cols, tokens, 1e-13);
        expect_reference<float>(rows, cols, tokens, 1e-5);
      }
}

}  // namespace
}  // namespace lagwise::kernels
