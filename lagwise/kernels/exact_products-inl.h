// The products of a tile of exact attention. Each has two forms, told apart by a slant:
// by key, where key b stands in column b of every row, and by entry of the tables by
// lag, where entry base + c stands in column c + a of row a (see exact_tile-inl.h).
//
// Of the B + C - 1 entries that a tile touches, a row reads C. So nothing is multiplied
// whole: the few rows, keys or entries that the arithmetic takes at once are multiplied
// with what they meet, and the extra work is that of a few, not of the whole tile. The
// same trims the tiles on the edge of what is seen.

#if defined(LAGWISE_KERNELS_EXACT_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LAGWISE_KERNELS_EXACT_PRODUCTS_INL_H_
#undef LAGWISE_KERNELS_EXACT_PRODUCTS_INL_H_
#else
#define LAGWISE_KERNELS_EXACT_PRODUCTS_INL_H_
#endif

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "lagwise/kernels/exact_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kByKey = 0, kByLag = 1;

/// The rows a that see something of columns [lo + slant a, hi + slant a). Both ends of
/// what is seen move one way with a, by at most one a row, so the rows stand together.
HWY_INLINE Range rows_meeting(const ExactTile& t, int64_t lo, int64_t hi,
                              int64_t slant) {
  Range rows = {0, t.rows};
  if (t.whole && slant == kByKey) return rows;
  const auto meets = [&](int64_t a) {  // a row that sees nothing of the tile never does
    const Range seen = t.seen[a];
    return !seen.empty() && seen.lo < hi + slant * a && seen.hi > lo + slant * a;
  };
  while (!rows.empty() && !meets(rows.lo)) ++rows.lo;
  while (!rows.empty() && !meets(rows.hi - 1)) --rows.hi;
  return rows;
}

/// tile[a][b] = left_a . (right_b + table_c): the scores from queries and keys, or the
/// gradients of the weights from those of the output and values. `right` and `table`
/// are packed by columns. What no row sees stays as it was.
template <class T>
HWY_NOINLINE void pair_products(const ExactTile& t, MatView<const T> left,
                                const T* right, const T* table, T* tile) {
  const int64_t width = panel_width<T>(), depth = left.cols;
  const int64_t padded = round_up(depth, width);
  const Left<T> all = {left.data + t.row * left.row_step, left.row_step, left.col_step};
  const auto panel = [&](const T* columns, int64_t first, int64_t slant,
                         bool keep) HWY_ATTR {
    const Range rows = rows_meeting(t, first, first + width, slant);
    const int64_t step = t.stride + slant;
    multiply<T>(all.from_row(rows.lo), columns, width, tile + first + rows.lo * step,
                step, rows.hi - rows.lo, depth, keep);
  };
  if (table) {
    const int64_t end = t.first_lag() + t.lags();
    for (int64_t c = t.first_lag() / width * width; c < end; c += width)
      panel(table + c * padded, c - t.base, kByLag, false);
  }
  for (int64_t b = 0; b < t.keys; b += width)
    panel(right + (t.key + b) * padded, b, kByKey, table != nullptr);
}

/// A matrix in panels: panel x, of all its rows, from data + x * step on.
template <class T>
struct Panels {
  T* data;
  int64_t step;
};

/// to[a] += sum over keys (entries) of tile[a][b] from[b]: a tile times keys, or times
/// a table. `from` begins with the tile's first key (entry), `to` with its first row.
template <int kSlant, class T>
HWY_NOINLINE void sum_keys(const ExactTile& t, const T* tile, Panels<const T> from,
                           Panels<T> to, int64_t panels) {
  const int64_t width = panel_width<T>();
  for (int64_t x = 0; x < panels; ++x)
    for (int64_t a = 0, few; a < t.rows; a += few) {
      few = tile_rows(t.rows - a);
      const int64_t more = kSlant * (few - 1);  // entries that only some of these read
      const Range keys = {t.seen[a].lo, t.seen[a + few - 1].hi};
      if (keys.empty()) continue;
      const int64_t first = keys.lo + kSlant * (t.rows - a - few);
      tile_of<T>(few, {tile + a * t.stride + keys.lo - more, t.stride + kSlant, 1},
                 from.data + x * from.step + first * width, width,
                 to.data + x * to.step + a * width, width, keys.hi - keys.lo + more,
                 true);
    }
}

/// c[panel] += sum_p a[p step] b[p][panel] in four sums. As a tile of one row it would
/// be a single chain of additions, the slowest and least exact of all.
template <class T>
HWY_NOINLINE void sum_alone(const T* a, int64_t step, const T* b, int64_t rows, T* c) {
  const hn::ScalableTag<T> tag;
  const int64_t width = panel_width<T>();
  Sums<hn::Vec<decltype(tag)>> s0(hn::Zero(tag)), s1 = s0, s2 = s0, s3 = s0;
  int64_t p = 0;
  const auto add = [&](int64_t r, auto& sums) HWY_ATTR {
    add_outer<1, 0>(tag, a + (p + r) * step, 0, b + (p + r) * width, sums);
  };
  for (; p + 4 <= rows; p += 4) add(0, s0), add(1, s1), add(2, s2), add(3, s3);
  for (; p < rows; ++p) add(0, s0);
  store_sum(tag, hn::Add(hn::Add(s0.c00, s1.c00), hn::Add(s2.c00, s3.c00)),
            hn::Add(hn::Add(s0.c01, s1.c01), hn::Add(s2.c01, s3.c01)), true, c);
}

/// to[b] += sum over rows of tile[a][b] from[a]: the tile's transpose times rows, by
/// keys or by entries. `from` begins with the tile's first row, `to` with its first key
/// (entry). Columns go outside: those of a few keys, and all of `from`, stay in the
/// first cache.
template <int kSlant, class T>
HWY_NOINLINE void sum_rows(const ExactTile& t, const T* tile, Panels<const T> from,
                           Panels<T> to, int64_t panels) {
  const int64_t width = panel_width<T>(), step = t.stride + kSlant;
  const int64_t count = kSlant ? t.lags() : t.keys, begin = kSlant ? 1 - t.rows : 0;
  for (int64_t b = 0, few; b < count; b += few) {
    few = tile_rows(count - b);
    const Range rows = rows_meeting(t, begin + b, begin + b + few, kSlant);
    if (rows.empty()) continue;
    for (int64_t x = 0; x < panels; ++x) {
      T* const sums = to.data + x * to.step + b * width;
      const T* const left = tile + rows.lo * step + begin + b;
      const T* const right = from.data + x * from.step + rows.lo * width;
      if (few == 1) {
        sum_alone<T>(left, step, right, rows.hi - rows.lo, sums);
        continue;
      }
      for (int64_t i = 0; i < few; ++i) hwy::Prefetch(sums + i * width);  // added last
      tile_of<T>(few, {left, 1, step}, right, width, sums, width, rows.hi - rows.lo,
                 true);
    }
  }
}

/// c[panel] += sum over keys of weights[p] b[p][panel].
template <class T>
HWY_INLINE void add_keys(const T* weights, const T* b, Range keys, T* c) {
  const hn::ScalableTag<T> tag;
  if (keys.empty()) return;
  const int64_t width = panel_width<T>();
  auto left = hn::Zero(tag), right = left;
  load_pair(tag, c, left, right);
  for (int64_t p = keys.lo; p < keys.hi; ++p) {
    auto b_left = left, b_right = right;
    load_pair(tag, b + p * width, b_left, b_right);
    add_pair(tag, weights[p], b_left, b_right, left, right);
  }
  store_pair(tag, left, right, c);
}

/// C[rows, panel] += weights B, row a over the keys it sees alone: a weight of zero
/// would still carry a NaN of a hidden value.
template <class T>
HWY_NOINLINE void multiply_seen(const ExactTile& t, const T* weights, const T* b,
                                T* c) {
  const int64_t width = panel_width<T>();
  for (int64_t a = 0; a < t.rows;) {
    const int64_t height = tile_rows(t.rows - a);
    Range all = t.seen[a];  // what every row of these sees
    for (int64_t r = a; r < a + height; ++r)
      all = {std::max(all.lo, t.seen[r].lo), std::min(all.hi, t.seen[r].hi)};
    if (all.empty()) all = {0, 0};
    tile_of<T>(height, {weights + a * t.stride + all.lo, t.stride, 1},
               b + all.lo * width, width, c + a * width, width, all.hi - all.lo, true);
    for (int64_t r = a; r < a + height; ++r) {
      const Range seen = t.seen[r];
      const Range before = {seen.lo, all.empty() ? seen.hi : all.lo};
      const Range after = {all.empty() ? seen.hi : all.hi, seen.hi};
      add_keys(weights + r * t.stride, b, before, c + r * width);
      add_keys(weights + r * t.stride, b, after, c + r * width);
    }
    a += height;
  }
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
