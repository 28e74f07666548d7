#include "lagwise/kernels/denominator_gradient.h"

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/denominator_gradient.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE T dot(MatView<const T> x, MatView<const T> y, int64_t i) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  int64_t j = 0;
  auto sums = hn::Zero(tag);
  if (x.col_step == 1 && y.col_step == 1)
    for (; j + lanes <= x.cols; j += lanes)
      sums =
          hn::MulAdd(hn::LoadU(tag, x.row(i) + j), hn::LoadU(tag, y.row(i) + j), sums);
  T sum = hn::GetLane(hn::SumOfLanes(tag, sums));
  for (; j < x.cols; ++j) sum += x(i, j) * y(i, j);
  return sum;
}

template <class T>
void gradient_of(MatView<const T> d_out, MatView<const T> out, MatView<const T> den,
                 T floor, MatView<T> inverse, MatView<T> d_den) noexcept {
  for (int64_t i = 0; i < den.rows; ++i) {
    const T divisor = den(i, 0);
    inverse(i, 0) = divisor == T{0} ? T{0} : T{1} / divisor;
    d_den(i, 0) = divisor <= floor ? T{0} : -dot(d_out, out, i) * inverse(i, 0);
  }
}

template <class T>
constexpr Kernels<denominator_gradient<T>> kKernels = {{gradient_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void denominator_gradient(MatView<const T> d_out, MatView<const T> out,
                          MatView<const T> den, T floor, MatView<T> inverse,
                          MatView<T> d_den) noexcept {
  chosen<T, denominator_gradient<T>>(d_out, out, den, floor, inverse, d_den);
}

LAGWISE_INSTANTIATE(denominator_gradient)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
