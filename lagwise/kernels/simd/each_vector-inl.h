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

/// Calls fn(tag, j) for vectors of `tag` as long as they fit into [j, count); returns
/// where they end.
template <class D, class Fn>
HWY_INLINE int64_t while_they_fit(D tag, int64_t j, int64_t count, const Fn& fn) {
  const auto lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(tag));
  for (; j + lanes <= count; j += lanes) fn(tag, j);
  return j;
}

/// Calls fn(tag, j) from j on for whole vectors, then for vectors of eight (a row of a
/// narrow head may be no longer), then for the rest one by one.
template <class T, class Fn>
HWY_INLINE void each_vector(int64_t count, const Fn& fn, int64_t begin = 0) {
  namespace hn = hwy::HWY_NAMESPACE;
  int64_t j = while_they_fit(hn::ScalableTag<T>(), begin, count, fn);
  if constexpr (HWY_MAX_BYTES / sizeof(T) > 8)
    j = while_they_fit(hn::CappedTag<T, 8>(), j, count, fn);
  while_they_fit(hn::CappedTag<T, 1>(), j, count, fn);
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
