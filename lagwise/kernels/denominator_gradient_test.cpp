#include "lagwise/kernels/denominator_gradient.h"

#include <limits>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::expect_close;
using lagwise::testing::for_each_simd_target;
using lagwise::testing::Mat;
using lagwise::testing::Storage;

template <class T>
void expect_as_defined(int64_t n, int64_t e, T floor, Storage storage) {
  const auto d_out = Mat<T>::uniform(n, e, 1, -1, 1, storage);
  const auto out = Mat<T>::uniform(n, e, 2, -1, 1, storage);
  auto den = Mat<T>::uniform(n, 1, 3, 0.1, 1);
  if (n > 2) den(1, 0) = 0;  // a row with nothing to attend to
  Mat<double> inverse(n, 1, 0.0), d_den(n, 1, 0.0);
  for (int64_t i = 0; i < n; ++i) {
    double dot = 0;
    for (int64_t j = 0; j < e; ++j) dot += double{d_out(i, j)} * out(i, j);
    if (den(i, 0) != 0) inverse(i, 0) = 1.0 / den(i, 0);
    if (den(i, 0) > floor) d_den(i, 0) = -dot * inverse(i, 0);
  }
  for_each_simd_target([&] {
    Mat<T> got_inverse(n, 1), got(n, 1);
    denominator_gradient<T>(d_out.view(), out.view(), den.view(), floor,
                            got_inverse.view(), got.view());
    expect_close(got_inverse, inverse, sizeof(T) == 4 ? 1e-6 : 1e-14);
    expect_close(got, d_den, sizeof(T) == 4 ? 1e-6 : 1e-14);
  });
}

TEST(DenominatorGradient, IsTheQuotientRule) {
  for (int64_t n : {0, 1, 5})
    for (int64_t e : {0, 1, 7, 8, 33})
      for (Storage storage : lagwise::testing::kEveryStorage) {
        expect_as_defined<float>(n, e, -std::numeric_limits<float>::infinity(),
                                 storage);
        expect_as_defined<double>(n, e, 0.5, storage);
      }
}

}  // namespace
}  // namespace lagwise::kernels
