#include "lagwise/kernels/rotate.h"

#include <algorithm>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/rotate.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/simd/dispatch.h"
#include "lagwise/kernels/simd/each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class V>
struct Plane {
  V a, b;
};

/// Loads (below: stores) the coordinates a and b of planes j, j + 1, ..., one plane a
/// lane, of a row with P planes.
template <Pairs kPairs, class D, class T>
HWY_INLINE Plane<hn::Vec<D>> load_planes(D d, const T* x, int64_t j, int64_t planes) {
  Plane<hn::Vec<D>> p;
  if constexpr (kPairs == Pairs::half) {
    p.a = hn::LoadU(d, x + j);
    p.b = hn::LoadU(d, x + planes + j);
  } else {
    hn::LoadInterleaved2(d, x + 2 * j, p.a, p.b);
  }
  return p;
}

template <Pairs kPairs, class D, class T>
HWY_INLINE void store_planes(D d, hn::Vec<D> a, hn::Vec<D> b, T* y, int64_t j,
                             int64_t planes) {
  if constexpr (kPairs == Pairs::half) {
    hn::StoreU(a, d, y + j);
    hn::StoreU(b, d, y + planes + j);
  } else {
    hn::StoreInterleaved2(a, b, d, y + 2 * j);
  }
}

template <Pairs kPairs, bool kOpposite, class D, class T>
HWY_INLINE void turn_planes(D d, const T* HWY_RESTRICT x, const T* HWY_RESTRICT table,
                            int64_t j, int64_t planes, T* HWY_RESTRICT y) {
  const auto x_j = load_planes<kPairs>(d, x, j, planes);
  const auto c = hn::LoadU(d, table + j), s = hn::LoadU(d, table + planes + j);
  const auto a = hn::Mul(c, x_j.a), b = hn::Mul(c, x_j.b);
  if constexpr (kOpposite) {
    store_planes<kPairs>(d, hn::MulAdd(s, x_j.b, a), hn::NegMulAdd(s, x_j.a, b), y, j,
                         planes);
  } else {
    store_planes<kPairs>(d, hn::NegMulAdd(s, x_j.b, a), hn::MulAdd(s, x_j.a, b), y, j,
                         planes);
  }
}

template <Pairs kPairs, bool kOpposite, class D, class T>
HWY_INLINE void add_gradient(D d, const T* HWY_RESTRICT x, const T* HWY_RESTRICT g,
                             int64_t j, int64_t planes, T* HWY_RESTRICT d_table) {
  const auto x_j = load_planes<kPairs>(d, x, j, planes);
  const auto g_j = load_planes<kPairs>(d, g, j, planes);
  T *const dc = d_table + j, *const ds = d_table + planes + j;
  const auto along = hn::MulAdd(g_j.b, x_j.b, hn::Mul(g_j.a, x_j.a));
  const auto across = hn::NegMulAdd(g_j.a, x_j.b, hn::Mul(g_j.b, x_j.a));
  hn::StoreU(hn::Add(hn::LoadU(d, dc), along), d, dc);
  const auto old = hn::LoadU(d, ds);
  hn::StoreU(kOpposite ? hn::Sub(old, across) : hn::Add(old, across), d, ds);
}

template <Pairs kPairs, bool kOpposite, class T>
HWY_NOINLINE void rotate_rows(MatView<const T> x, MatView<const T> table,
                              MatView<T> y) {
  const int64_t planes = table.cols / 2;
  for (int64_t i = 0; i < x.rows; ++i) {
    const T *const from = x.row(i), *const turn = table.row(i);
    T* const to = y.row(i);
    each_vector<T>(planes, [&](auto tag, int64_t j) HWY_ATTR {
      turn_planes<kPairs, kOpposite>(tag, from, turn, j, planes, to);
    });
    std::copy(from + 2 * planes, from + x.cols, to + 2 * planes);
  }
}

template <Pairs kPairs, bool kOpposite, class T>
HWY_NOINLINE void gradient_rows(MatView<const T> x, MatView<const T> g,
                                MatView<T> d_table) {
  const int64_t planes = d_table.cols / 2;
  for (int64_t i = 0; i < x.rows; ++i)
    each_vector<T>(planes, [&](auto tag, int64_t j) HWY_ATTR {
      add_gradient<kPairs, kOpposite>(tag, x.row(i), g.row(i), j, planes,
                                      d_table.row(i));
    });
}

template <class T>
void rotate_any(MatView<const T> x, MatView<const T> table, Pairs pairs, bool opposite,
                MatView<T> y) noexcept {
  if (pairs == Pairs::half) {
    if (opposite) return rotate_rows<Pairs::half, true>(x, table, y);
    return rotate_rows<Pairs::half, false>(x, table, y);
  }
  if (opposite) return rotate_rows<Pairs::interleaved, true>(x, table, y);
  rotate_rows<Pairs::interleaved, false>(x, table, y);
}

template <class T>
void gradient_any(MatView<const T> x, MatView<const T> g, Pairs pairs, bool opposite,
                  MatView<T> d_table) noexcept {
  if (pairs == Pairs::half) {
    if (opposite) return gradient_rows<Pairs::half, true>(x, g, d_table);
    return gradient_rows<Pairs::half, false>(x, g, d_table);
  }
  if (opposite) return gradient_rows<Pairs::interleaved, true>(x, g, d_table);
  gradient_rows<Pairs::interleaved, false>(x, g, d_table);
}

template <class T>
constexpr Kernels<rotate<T>, rotate_gradient<T>> kKernels = {{rotate_any<T>},
                                                             {gradient_any<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void rotate(MatView<const T> x, MatView<const T> table, Pairs pairs, bool opposite,
            MatView<T> y) noexcept {
  chosen<T, rotate<T>>(x, table, pairs, opposite, y);
}
template <class T>
void rotate_gradient(MatView<const T> x, MatView<const T> g, Pairs pairs, bool opposite,
                     MatView<T> d_table) noexcept {
  chosen<T, rotate_gradient<T>>(x, g, pairs, opposite, d_table);
}

LAGWISE_INSTANTIATE(rotate)
LAGWISE_INSTANTIATE(rotate_gradient)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
