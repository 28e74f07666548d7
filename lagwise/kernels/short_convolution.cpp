#include "lagwise/kernels/short_convolution.h"

#include <algorithm>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/short_convolution.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/simd/dispatch.h"
#include "lagwise/kernels/simd/each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void convolve(MatView<const T> before, MatView<const T> x, MatView<const T> taps,
              MatView<T> y) noexcept {
  for (int64_t t = 0; t < x.rows; ++t) {
    const int64_t here = std::min(taps.rows, t + 1);     // taps that meet x
    const int64_t all = before.data ? taps.rows : here;  // and those before it
    const int64_t shift = before.rows + t;               // x_{t-j}: row shift - j
    T* HWY_RESTRICT to = y.row(t);
    each_vector<T>(x.cols, [&](auto tag, int64_t c) HWY_ATTR {
      auto sum = hn::Zero(tag);
      const auto add = [&](const T* row, int64_t j) HWY_ATTR {
        sum = hn::MulAdd(hn::LoadU(tag, row + c), hn::LoadU(tag, taps.row(j) + c), sum);
      };
      for (int64_t j = 0; j < here; ++j) add(x.row(t - j), j);
      for (int64_t j = here; j < all; ++j) add(before.row(shift - j), j);
      hn::StoreU(sum, tag, to + c);
    });
  }
}

template <class T>
void convolve_gradient(MatView<const T> x, MatView<const T> taps, MatView<const T> dy,
                       int64_t first, MatView<T> dx,
                       MatView<T> taps_gradient) noexcept {
  for (int64_t t = 0; t < x.rows; ++t) {
    const int64_t begin = std::max<int64_t>(0, -(t + first));
    const int64_t end = std::min(taps.rows, dy.rows - (t + first));
    const T* HWY_RESTRICT at = x.row(t);
    T* HWY_RESTRICT to = dx.row(t);
    each_vector<T>(x.cols, [&](auto tag, int64_t c) HWY_ATTR {
      const auto v = hn::LoadU(tag, at + c);
      auto sum = hn::Zero(tag);
      for (int64_t j = begin; j < end; ++j) {
        const auto up = hn::LoadU(tag, dy.row(t + first + j) + c);
        sum = hn::MulAdd(up, hn::LoadU(tag, taps.row(j) + c), sum);
        T* const gradient = taps_gradient.row(j) + c;
        hn::StoreU(hn::MulAdd(up, v, hn::LoadU(tag, gradient)), tag, gradient);
      }
      hn::StoreU(sum, tag, to + c);
    });
  }
}

template <class T>
constexpr Kernels<short_convolution<T>, short_convolution_gradient<T>> kKernels = {
    {convolve<T>}, {convolve_gradient<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void short_convolution(MatView<const T> before, MatView<const T> x,
                       MatView<const T> taps, MatView<T> y) noexcept {
  chosen<T, short_convolution<T>>(before, x, taps, y);
}
template <class T>
void short_convolution_gradient(MatView<const T> x, MatView<const T> taps,
                                MatView<const T> dy, int64_t first, MatView<T> dx,
                                MatView<T> taps_gradient) noexcept {
  chosen<T, short_convolution_gradient<T>>(x, taps, dy, first, dx, taps_gradient);
}

LAGWISE_INSTANTIATE(short_convolution)
LAGWISE_INSTANTIATE(short_convolution_gradient)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
