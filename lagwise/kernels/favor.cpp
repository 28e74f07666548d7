#include "lagwise/kernels/favor.h"

#include <algorithm>
#include <cassert>
#include <cmath>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/favor.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/feature_map-inl.h"
#include "lagwise/kernels/simd/dispatch.h"
#include "lagwise/kernels/simd/rows-inl.h"
#include "lagwise/kernels/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Kind = Favor::Kind;

// Rows at a time: four tiles. Their projections, 24 KB at m = 256, stay in the first
// cache until the exponential has read them.
constexpr int64_t kBlock = 24;

template <class T>
void pack_panels_of(MatView<const T> b, T factor, T* to) noexcept {
  const int64_t width = panel_width<T>();
  for (int64_t first = 0; first < b.cols; first += width) {
    const int64_t cols = std::min(width, b.cols - first);
    for (int64_t p = 0; p < b.rows; ++p, to += width) {
      for (int64_t j = 0; j < cols; ++j) to[j] = b(p, first + j) * factor;
      std::fill(to + cols, to + width, T{0});
    }
  }
}

/// c = a [rows, depth] times what pack_panels made; c lies panel by panel,
/// [cols / W][kBlock][W] with W columns a panel.
template <class T>
HWY_INLINE void times_panels(Left<T> a, const T* right, int64_t rows, int64_t depth,
                             int64_t cols, T* c) {
  const int64_t width = panel_width<T>();
  for (int64_t first = 0; first < cols; first += width) {
    multiply<T>(a, right, width, c, width, rows, depth, false);
    right += depth * width;
    c += kBlock * width;
  }
}

/// A row of such a product: a panel every `step` numbers.
template <class T>
struct PanelRow {
  const T* data;
  int64_t step;
};
template <class T>
HWY_INLINE PanelRow<T> panel_row(const T* c, int64_t row) {
  return {c + row * panel_width<T>(), kBlock * panel_width<T>()};
}

/// max_j u_j, or max_j |u_j| for `both` signs; NaN if any is.
template <class T>
HWY_INLINE T largest(PanelRow<T> u, int64_t m, bool both) {
  const hn::ScalableTag<T> tag;
  const int64_t width = panel_width<T>();
  T top = both ? std::abs(u.data[0]) : u.data[0];
  auto most = hn::Set(tag, top), doubt = hn::Zero(tag);
  int64_t j = 0;
  for (; j + width <= m; j += width, u.data += u.step) {
    auto left = hn::Zero(tag), right = left;
    load_pair(tag, u.data, left, right);
    // Max may drop a NaN; differences keep it.
    doubt = hn::Add(doubt, hn::Add(hn::Sub(left, left), hn::Sub(right, right)));
    if (both) left = hn::Abs(left), right = hn::Abs(right);
    most = hn::Max(most, hn::Max(left, right));
  }
  top = hn::GetLane(hn::MaxOfLanes(tag, most));
  T nan = hn::GetLane(hn::SumOfLanes(tag, doubt));
  for (int64_t i = 0; i < m - j; ++i) {
    top = std::max(top, both ? std::abs(u.data[i]) : u.data[i]);
    nan += u.data[i] - u.data[i];
  }
  return top + nan;
}

/// y[0, m) = fn(u[0, m)).
template <class T, class Fn>
HWY_INLINE void map_dense(PanelRow<T> u, int64_t m, T* HWY_RESTRICT y, const Fn& fn) {
  const hn::ScalableTag<T> tag;
  const int64_t width = panel_width<T>();
  int64_t j = 0;
  for (; j + width <= m; j += width, u.data += u.step) {
    auto left = hn::Zero(tag), right = left;
    load_pair(tag, u.data, left, right);
    store_pair(tag, fn(left), fn(right), y + j);
  }
  if (j == m) return;
  T tail[2 * hn::MaxLanes(tag)];
  auto left = hn::Zero(tag), right = left;
  load_pair(tag, u.data, left, right);
  store_pair(tag, fn(left), fn(right), tail);
  std::copy_n(tail, m - j, y + j);
}

/// |x|^2 of one row with any step.
template <class T>
HWY_INLINE double squared_norm(const T* x, int64_t step, int64_t d) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  auto sums = hn::Zero(tag);
  int64_t j = 0;
  for (; step == 1 && j + lanes <= d; j += lanes) {
    const auto v = hn::LoadU(tag, x + j);
    sums = hn::MulAdd(v, v, sums);
  }
  auto sum = static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, sums)));
  for (; j < d; ++j) {
    const auto v = static_cast<double>(x[j * step]);
    sum += v * v;
  }
  return sum;
}

/// Features of one row from its projections u; returns c.
template <class T>
HWY_NOINLINE T row_features(const Favor& favor, PanelRow<T> u, int64_t m, T* y) {
  const hn::ScalableTag<T> tag;
  if (favor.kind == Kind::relu) {
    const Relu relu{favor.offset};
    map_dense(u, m, y, [&](auto x) HWY_ATTR { return relu.value(tag, x); });
    return 0;
  }
  const bool both = favor.kind == Kind::two_sided;
  const T top = largest(u, m, both);
  const auto c = hn::Set(tag, top);
  map_dense(u, m, y,
            [&](auto x) HWY_ATTR { return exp_of_negative(tag, hn::Sub(x, c)); });
  if (both)
    map_dense(u, m, y + m, [&](auto x) HWY_ATTR {
      return exp_of_negative(tag, hn::Neg(hn::Add(x, c)));
    });
  return top;
}

template <class T>
void favor_rows_of(const Favor& favor, MatView<const T> x, const T* right, int64_t m,
                   MatView<T> y, MatView<T> log_scale, T* u) noexcept {
  assert(y.col_step == 1 || y.cols <= 1);
  if (m == 0) return;
  const int64_t d = x.cols;
  const double half = 0.5 / std::sqrt(static_cast<double>(std::max<int64_t>(d, 1)));
  const double share = 0.5 * std::log(static_cast<double>(favor.width(m)));
  for (int64_t begin = 0; begin < x.rows; begin += kBlock) {
    const int64_t rows = std::min(kBlock, x.rows - begin);
    times_panels<T>({x.row(begin), x.row_step, x.col_step}, right, rows, d, m, u);
    for (int64_t i = 0; i < rows; ++i) {
      const T c = row_features(favor, panel_row<T>(u, i), m, y.row(begin + i));
      if (!log_scale.data) continue;
      const double norm = squared_norm(x.row(begin + i), x.col_step, d);
      log_scale(begin + i, 0) =
          static_cast<T>(static_cast<double>(c) - half * norm - share);
    }
  }
}

/// du[0, m) of one row.
template <class T>
HWY_NOINLINE void projection_gradient(const Favor& favor, const T* y, const T* dy,
                                      int64_t m, T dlog_scale, T* du) {
  if (favor.kind == Kind::relu) {
    const T offset = static_cast<T>(favor.offset);
    for (int64_t j = 0; j < m; ++j) du[j] = y[j] > offset ? dy[j] : T{0};
    return;
  }
  T total = 0;
  int64_t top = -1;
  T sign = 1;
  for (int64_t j = 0; j < m; ++j) {
    du[j] = dy[j] * y[j];
    total += du[j];
    if (y[j] == T{1} && top < 0) top = j;
  }
  if (favor.kind == Kind::two_sided)
    for (int64_t j = 0; j < m; ++j) {
      const T minus = dy[m + j] * y[m + j];
      du[j] -= minus;
      total += minus;
      if (y[m + j] == T{1} && top < 0) top = j, sign = -1;
    }
  // c follows the largest projection; without a largest (NaN) there is nothing to add.
  if (top >= 0) du[top] += sign * (dlog_scale - total);
}

template <class T>
void favor_gradient_of(const Favor& favor, MatView<const T> x, MatView<const T> y,
                       MatView<const T> dy, MatView<const T> dlog_scale, const T* right,
                       int64_t m, MatView<T> dx, T* scratch) noexcept {
  const int64_t width = panel_width<T>(), d = x.cols;
  const int64_t m_padded = round_up(m, width);
  T* const du = scratch;                       // [kBlock, m padded]
  T* const sum = scratch + kBlock * m_padded;  // [d padded / W][kBlock][W]
  const T pull = static_cast<T>(1 / std::sqrt(static_cast<double>(d)));
  for (int64_t begin = 0; begin < x.rows; begin += kBlock) {
    const int64_t rows = std::min(kBlock, x.rows - begin);
    for (int64_t i = 0; i < rows; ++i)
      projection_gradient(favor, y.row(begin + i), dy.row(begin + i), m,
                          dlog_scale.data ? dlog_scale(begin + i, 0) : T{0},
                          du + i * m_padded);
    times_panels<T>({du, m_padded, 1}, right, rows, m, d, sum);
    for (int64_t i = 0; i < rows; ++i) {
      const T* at = x.row(begin + i);
      const T g = dlog_scale.data ? dlog_scale(begin + i, 0) * pull : T{0};
      T* to = dx.row(begin + i);
      for (int64_t j = 0; j < d; ++j)
        to[j] =
            sum[(j / width * kBlock + i) * width + j % width] - g * at[j * x.col_step];
    }
  }
}

template <class T>
int64_t packed_size_of(int64_t depth, int64_t cols) {
  return depth * round_up(cols, panel_width<T>());
}

template <class T>
int64_t favor_scratch_of(int64_t m, int64_t d) {
  const int64_t width = panel_width<T>();
  return kBlock * (round_up(m, width) + round_up(d, width));
}

template <class T>
constexpr Kernels<pack_panels<T>, packed_size<T>, favor_rows<T>, favor_rows_gradient<T>,
                  favor_scratch<T>>
    kKernels = {{pack_panels_of<T>},
                {packed_size_of<T>},
                {favor_rows_of<T>},
                {favor_gradient_of<T>},
                {favor_scratch_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void pack_panels(MatView<const T> b, T factor, T* to) noexcept {
  chosen<T, pack_panels<T>>(b, factor, to);
}
template <class T>
int64_t packed_size(int64_t depth, int64_t cols) {
  return chosen<T, packed_size<T>>(depth, cols);
}
template <class T>
void favor_rows(const Favor& favor, MatView<const T> x, const T* right, int64_t m,
                MatView<T> y, MatView<T> log_scale, T* scratch) noexcept {
  chosen<T, favor_rows<T>>(favor, x, right, m, y, log_scale, scratch);
}
template <class T>
void favor_rows_gradient(const Favor& favor, MatView<const T> x, MatView<const T> y,
                         MatView<const T> dy, MatView<const T> dlog_scale,
                         const T* right, int64_t m, MatView<T> dx,
                         T* scratch) noexcept {
  chosen<T, favor_rows_gradient<T>>(favor, x, y, dy, dlog_scale, right, m, dx, scratch);
}
template <class T>
int64_t favor_scratch(int64_t m, int64_t d) {
  return chosen<T, favor_scratch<T>>(m, d);
}

LAGWISE_INSTANTIATE(pack_panels)
LAGWISE_INSTANTIATE(packed_size)
LAGWISE_INSTANTIATE(favor_rows)
LAGWISE_INSTANTIATE(favor_rows_gradient)
LAGWISE_INSTANTIATE(favor_scratch)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
