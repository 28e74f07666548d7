#include "lagwise/kernels/add_rows.h"

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/add_rows.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/simd/dispatch.h"
#include "lagwise/kernels/simd/each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void add_row(const T* one, const T* other, int64_t cols, T* y) {
  each_vector<T>(cols, [&](auto tag, int64_t j) HWY_ATTR {
    auto sum = hn::LoadU(tag, one + j);
    if (other) sum = hn::Add(sum, hn::LoadU(tag, other + j));
    hn::StoreU(hn::Add(hn::LoadU(tag, y + j), sum), tag, y + j);
  });
}

template <class T>
void add_rows_of(MatView<const T> x, const T* bias, MatView<T> y) noexcept {
  if (!x.data && !bias) return;
  for (int64_t i = 0; i < y.rows; ++i)
    x.data ? add_row(x.row(i), bias, y.cols, y.row(i))
           : add_row<T>(bias, nullptr, y.cols, y.row(i));
}

template <class T>
constexpr Kernels<add_rows<T>> kKernels = {{add_rows_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void add_rows(MatView<const T> x, const T* bias, MatView<T> y) noexcept {
  chosen<T, add_rows<T>>(x, bias, y);
}

LAGWISE_INSTANTIATE(add_rows)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
