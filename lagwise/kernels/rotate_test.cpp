#include "lagwise/kernels/rotate.h"

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using testing::expect_close;
using testing::for_each_simd_target;
using testing::Mat;
using testing::Storage;

struct Shape {
  int64_t n, d, planes;
};

/// The coordinates of plane j.
int64_t first(Pairs pairs, int64_t j) { return pairs == Pairs::half ? j : 2 * j; }
int64_t second(Pairs pairs, int64_t j, int64_t planes) {
  return pairs == Pairs::half ? j + planes : 2 * j + 1;
}

template <class T>
Mat<double> by_definition(const Mat<T>& x, const Mat<T>& table, Pairs pairs,
                          double sign) {
  const int64_t planes = table.cols() / 2;
  Mat<double> y(x.rows(), x.cols());
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t e = 0; e < x.cols(); ++e) y(i, e) = x(i, e);
    for (int64_t j = 0; j < planes; ++j) {
      const int64_t a = first(pairs, j), b = second(pairs, j, planes);
      const double c = table(i, j), s = sign * table(i, planes + j);
      y(i, a) = c * x(i, a) - s * x(i, b);
      y(i, b) = c * x(i, b) + s * x(i, a);
    }
  }
  return y;
}

template <class T>
Mat<double> gradient_by_definition(const Mat<T>& x, const Mat<T>& g,
                                   const Mat<T>& before, Pairs pairs, double sign) {
  const int64_t planes = before.cols() / 2;
  Mat<double> d(before.rows(), before.cols());
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < planes; ++j) {
      const int64_t a = first(pairs, j), b = second(pairs, j, planes);
      d(i, j) = before(i, j) + double(g(i, a)) * x(i, a) + double(g(i, b)) * x(i, b);
      d(i, planes + j) = before(i, planes + j) +
                         sign * (double(g(i, b)) * x(i, a) - double(g(i, a)) * x(i, b));
    }
  }
  return d;
}

class Rotate : public ::testing::TestWithParam<Shape> {};

INSTANTIATE_TEST_SUITE_P(Shapes, Rotate,
                         ::testing::Values(Shape{0, 4, 2}, Shape{1, 1, 0},
                                           Shape{3, 2, 1}, Shape{5, 7, 3},
                                           Shape{4, 64, 32}, Shape{7, 67, 33},
                                           Shape{3, 40, 9}),
                         [](const auto& info) {
                           const Shape& s = info.param;
                           return "N" + std::to_string(s.n) + "_D" +
                                  std::to_string(s.d) + "_P" + std::to_string(s.planes);
                         });

template <class T>
void expect_by_definition(const Shape& s, double tolerance) {
  for (const Pairs pairs : {Pairs::interleaved, Pairs::half}) {
    for (const bool opposite : {false, true}) {
      for (const Storage storage :
           {Storage::dense, Storage::padded, Storage::reversed}) {
        const auto x = Mat<T>::uniform(s.n, s.d, 1, -1, 1, storage);
        const auto g = Mat<T>::uniform(s.n, s.d, 2, -1, 1, storage);
        const auto table = Mat<T>::uniform(s.n, 2 * s.planes, 3, -1, 1, storage);
        const double sign = opposite ? -1 : 1;
        for_each_simd_target([&] {
          Mat<T> y(s.n, s.d, storage);
          rotate<T>(x.view(), table.view(), pairs, opposite, y.view());
          expect_close(y, by_definition(x, table, pairs, sign), tolerance);
          Mat<T> d_table = table;
          rotate_gradient<T>(x.view(), g.view(), pairs, opposite, d_table.view());
          expect_close(d_table, gradient_by_definition(x, g, table, pairs, sign),
                       tolerance);
        });
      }
    }
  }
}

TEST_P(Rotate, MatchesTheDefinitionOnEverySimdTarget) {
  expect_by_definition<float>(GetParam(), 1e-6);
  expect_by_definition<double>(GetParam(), 1e-15);
}

}  // namespace
}  // namespace lagwise::kernels
