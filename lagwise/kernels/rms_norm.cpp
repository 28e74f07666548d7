#include "lagwise/kernels/rms_norm.h"

#include <cmath>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/rms_norm.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/simd/dispatch.h"
#include "lagwise/kernels/simd/each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// sum_j fn(j), where fn(tag, j) gives a vector of terms: two sums at once hide the
/// latency of an addition.
template <class T, class Fn>
HWY_INLINE T sum_over(int64_t cols, const Fn& fn) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  auto even = hn::Zero(tag), odd = even;
  int64_t j = 0;
  for (; j + 2 * lanes <= cols; j += 2 * lanes) {
    even = hn::Add(even, fn(tag, j));
    odd = hn::Add(odd, fn(tag, j + lanes));
  }
  if (j + lanes <= cols) even = hn::Add(even, fn(tag, j)), j += lanes;
  T sum = hn::GetLane(hn::SumOfLanes(tag, hn::Add(even, odd)));
  each_vector<T>(
      cols,
      [&](auto few, int64_t at)
          HWY_ATTR { sum += hn::GetLane(hn::SumOfLanes(few, fn(few, at))); },
      j);
  return sum;
}

template <class T>
void norm_rows(MatView<const T> x, MatView<const T> gains, double eps, MatView<T> y,
               T* HWY_RESTRICT inv_size) noexcept {
  const int64_t cols = x.cols;
  for (int64_t i = 0, group = 0; i < x.rows; ++i) {
    const T* HWY_RESTRICT gain = gains.row(group);
    if (++group == gains.rows) group = 0;
    const T* HWY_RESTRICT from = x.row(i);
    T* HWY_RESTRICT to = y.row(i);
    const T squares = sum_over<T>(cols, [&](auto tag, int64_t j) HWY_ATTR {
      const auto v = hn::LoadU(tag, from + j);
      return hn::Mul(v, v);
    });
    const T r = static_cast<T>(
        1 / std::sqrt(static_cast<double>(squares) / static_cast<double>(cols) + eps));
    inv_size[i] = r;
    each_vector<T>(cols, [&](auto tag, int64_t j) HWY_ATTR {
      const auto v = hn::Mul(hn::LoadU(tag, from + j), hn::Set(tag, r));
      hn::StoreU(hn::Mul(v, hn::LoadU(tag, gain + j)), tag, to + j);
    });
  }
}

template <class T>
void norm_gradient(MatView<const T> x, MatView<const T> gains,
                   const T* HWY_RESTRICT inv_size, MatView<const T> dy,
                   MatView<const T> start, MatView<T> dx,
                   MatView<T> gain_gradients) noexcept {
  const int64_t cols = x.cols;
  for (int64_t i = 0, group = 0; i < x.rows; ++i) {
    const T* HWY_RESTRICT gain = gains.row(group);
    T* HWY_RESTRICT gain_gradient = gain_gradients.row(group);
    if (++group == gains.rows) group = 0;
    const T* HWY_RESTRICT at = x.row(i);
    const T* HWY_RESTRICT up = dy.row(i);
    const T* const plus = start.data ? start.row(i) : nullptr;
    T* const to = dx.row(i);
    const T dot = sum_over<T>(cols, [&](auto tag, int64_t j) HWY_ATTR {
      const auto g = hn::Mul(hn::LoadU(tag, up + j), hn::LoadU(tag, gain + j));
      return hn::Mul(g, hn::LoadU(tag, at + j));
    });
    const T r = inv_size[i];
    const T back = r * r * r * dot / static_cast<T>(cols);
    each_vector<T>(cols, [&](auto tag, int64_t j) HWY_ATTR {
      const auto v = hn::LoadU(tag, at + j), u = hn::LoadU(tag, up + j);
      const auto ru = hn::Mul(u, hn::Set(tag, r));
      const auto base = plus ? hn::LoadU(tag, plus + j) : hn::Zero(tag);
      const auto along = hn::MulAdd(ru, hn::LoadU(tag, gain + j), base);
      hn::StoreU(hn::NegMulAdd(v, hn::Set(tag, back), along), tag, to + j);
      const auto sum = hn::MulAdd(ru, v, hn::LoadU(tag, gain_gradient + j));
      hn::StoreU(sum, tag, gain_gradient + j);
    });
  }
}

template <class T>
constexpr Kernels<rms_norm<T>, rms_norm_gradient<T>> kKernels = {{norm_rows<T>},
                                                                 {norm_gradient<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void rms_norm(MatView<const T> x, MatView<const T> gain, double eps, MatView<T> y,
              T* inv_size) noexcept {
  chosen<T, rms_norm<T>>(x, gain, eps, y, inv_size);
}
template <class T>
void rms_norm_gradient(MatView<const T> x, MatView<const T> gain, const T* inv_size,
                       MatView<const T> dy, MatView<const T> start, MatView<T> dx,
                       MatView<T> gain_gradient) noexcept {
  chosen<T, rms_norm_gradient<T>>(x, gain, inv_size, dy, start, dx, gain_gradient);
}

LAGWISE_INSTANTIATE(rms_norm)
LAGWISE_INSTANTIATE(rms_norm_gradient)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
