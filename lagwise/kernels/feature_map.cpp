#include "lagwise/kernels/feature_map.h"

#include <algorithm>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/feature_map.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/feature_map-inl.h"
#include "lagwise/kernels/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Numbers `step` apart.
template <class T>
struct Row {
  T* data;
  int64_t step;
};

template <class T>
HWY_INLINE void gather(Row<const T> row, int64_t begin, int64_t count, T* to) {
  for (int64_t j = 0; j < count; ++j) to[j] = row.data[(begin + j) * row.step];
}

/// One row of either function: out_j = fn(x_j, grad_j), where grad may be absent.
/// The last vector, and all of rows with gaps, go by way of a buffer.
template <class T, class Fn>
HWY_INLINE void map_row(Row<const T> x, Row<const T> grad, Row<T> out, int64_t cols,
                        const Fn& fn) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const bool dense = x.step == 1 && out.step == 1 && (!grad.data || grad.step == 1);
  int64_t j = 0;
  for (; dense && j + lanes <= cols; j += lanes) {
    const auto at = hn::LoadU(tag, x.data + j);
    const auto g = grad.data ? hn::LoadU(tag, grad.data + j) : at;
    hn::StoreU(fn(at, g), tag, out.data + j);
  }
  T at[hn::MaxLanes(tag)] = {}, g[hn::MaxLanes(tag)] = {};
  for (; j < cols; j += lanes) {
    const int64_t count = std::min(lanes, cols - j);
    gather(x, j, count, at);
    if (grad.data) gather(grad, j, count, g);
    hn::StoreU(fn(hn::LoadU(tag, at), hn::LoadU(tag, g)), tag, at);
    for (int64_t i = 0; i < count; ++i) out.data[(j + i) * out.step] = at[i];
  }
}

template <class T>
void map_rows_of(const FeatureMap& map, MatView<const T> x, MatView<T> out) noexcept {
  const hn::ScalableTag<T> tag;
  with_map(map, [&](const auto& phi) HWY_ATTR {
    for (int64_t i = 0; i < x.rows; ++i)
      map_row<T>({x.row(i), x.col_step}, {nullptr, 1}, {out.row(i), out.col_step},
                 x.cols, [&](auto at, auto) HWY_ATTR { return phi.value(tag, at); });
  });
}

template <class T>
void map_slopes_of(const FeatureMap& map, MatView<const T> x, MatView<const T> grad,
                   MatView<T> out) noexcept {
  const hn::ScalableTag<T> tag;
  with_map(map, [&](const auto& phi) HWY_ATTR {
    for (int64_t i = 0; i < x.rows; ++i)
      map_row<T>({x.row(i), x.col_step}, {grad.row(i), grad.col_step},
                 {out.row(i), out.col_step}, x.cols, [&](auto at, auto g) HWY_ATTR {
                   return hn::Mul(phi.slope(tag, at), g);
                 });
  });
}

template <class T>
constexpr Kernels<map_rows<T>, map_slopes<T>> kKernels = {{map_rows_of<T>},
                                                          {map_slopes_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void map_rows(const FeatureMap& map, MatView<const T> x, MatView<T> out) noexcept {
  chosen<T, map_rows<T>>(map, x, out);
}
template <class T>
void map_slopes(const FeatureMap& map, MatView<const T> x, MatView<const T> grad,
                MatView<T> out) noexcept {
  chosen<T, map_slopes<T>>(map, x, grad, out);
}

LAGWISE_INSTANTIATE(map_rows)
LAGWISE_INSTANTIATE(map_slopes)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
