// A loop over numbers side by side, of any count.

#if defined(LAGWISE_KERNELS_EACH_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LAGWISE_KERNELS_EACH_VECTOR_INL_H_
#undef LAGWISE_KERNELS_EACH_VECTOR_INL_H_
#else
#define LAGWISE_KERNELS_EACH_VECTOR_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {

/// Calls fn(tag, j) for whole vectors from j on, then for the rest one by one.
template <class T, class Fn>
HWY_INLINE void each_vector(int64_t count, const Fn& fn) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  int64_t j = 0;
  for (; j + lanes <= count; j += lanes) fn(tag, j);
  const hn::CappedTag<T, 1> one;
  for (; j < count; ++j) fn(one, j);
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
