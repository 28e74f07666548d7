// A tile of exact attention: some query rows against some keys, and the band of lags
// between them. The passes of exact_attention.cpp and exact_gradient.cpp are made of
// what stands here and of the products in exact_products-inl.h.
//
// Tables by lag are packed backwards, so that they run in the direction of the keys:
// row i and key j read entry c = N-1-i + j. A tile of B rows and C keys touches the
// B+C-1 entries from base - (B-1) to base + C-1, base = N-1-i0 + j0, and row a, key b
// of the tile stand at entry base + b - a. So the product of the rows with a strip of
// entries, stored with one extra step per row, falls into place beside the scores: the
// skew is in the address, and nothing is moved. In the other direction a tile read
// with one extra step per row is a matrix of rows by entries.
//
//     rows of the tile in memory:   [ margin | C scores | margin ], stride apart

#if defined(LAGWISE_KERNELS_EXACT_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LAGWISE_KERNELS_EXACT_TILE_INL_H_
#undef LAGWISE_KERNELS_EXACT_TILE_INL_H_
#else
#define LAGWISE_KERNELS_EXACT_TILE_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "hwy/highway.h"
#include "lagwise/kernels/exact_attention.h"
#include "lagwise/kernels/feature_map-inl.h"
#include "lagwise/kernels/simd/rows-inl.h"
#include "lagwise/kernels/simd/scratch.h"
#include "lagwise/kernels/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

struct Range {
  int64_t lo, hi;
  bool empty() const { return lo >= hi; }
};

/// The keys that row i sees, of m. Both ends never fall as i grows.
HWY_INLINE Range seen_by(const Sight& sight, int64_t i, int64_t m) {
  const int64_t at = i + sight.shift;
  Range r = {0, m};
  if (sight.window > 0) r = {at - sight.window + 1, at + sight.window};
  if (sight.causal) r.hi = std::min(r.hi, at + 1);
  return {std::clamp<int64_t>(r.lo, 0, m), std::clamp<int64_t>(r.hi, 0, m)};
}

/// Where one tile stands.
struct ExactTile {
  int64_t row, rows;       // query rows [row, row + rows)
  int64_t key, keys;       // keys [key, key + keys); key at the start of a panel
  int64_t base;            // the lag entry of the tile's first row and first key
  int64_t stride;          // numbers from a row of the tile to the next
  Range seen[kExactRows];  // of each row, counted from `key`
  bool whole;              // every row sees every key

  int64_t first_lag() const { return base - (rows - 1); }
  int64_t lags() const { return rows + keys - 1; }
};

/// The tile of rows [row, row + rows) and keys [begin, end), less what no row sees.
HWY_INLINE ExactTile make_tile(const Sight& sight, int64_t n, int64_t m, int64_t row,
                               int64_t rows, Range keys, int64_t width,
                               int64_t stride) {
  ExactTile t;
  t.row = row, t.rows = rows, t.stride = stride;
  const int64_t first = std::max(keys.lo, seen_by(sight, row, m).lo);
  const int64_t last = std::min(keys.hi, seen_by(sight, row + rows - 1, m).hi);
  t.key = keys.lo + (std::max(first, keys.lo) - keys.lo) / width * width;
  t.keys = std::max<int64_t>(0, last - t.key);
  if (first >= last) t.keys = 0;
  t.base = n - 1 - row + t.key;
  t.whole = true;
  for (int64_t a = 0; a < rows; ++a) {
    const Range r = seen_by(sight, row + a, m);
    t.seen[a] = {std::clamp<int64_t>(r.lo - t.key, 0, t.keys),
                 std::clamp<int64_t>(r.hi - t.key, 0, t.keys)};
    t.whole = t.whole && t.seen[a].lo == 0 && t.seen[a].hi == t.keys;
  }
  return t;
}

/// Numbers between two rows of a tile with tables by lag, and before the first one.
/// A product by entries is a whole panel wide and a few rows high, so it reaches over
/// the ends of a row by less than a panel, or by less than those few.
template <class T>
HWY_INLINE int64_t tile_margin() {
  return std::max<int64_t>(16, panel_width<T>());
}
/// Numbers from row to row of a tile.
template <class T>
HWY_INLINE int64_t tile_stride(const ExactHead<T>& head) {
  const bool skewed = head.lag_keys.data || head.lag_values.data;
  return kExactKeys + (skewed ? tile_margin<T>() : 0);
}
template <class T>
HWY_INLINE T* take_tile(Scratch<T>& pieces, const ExactHead<T>& head) {
  T* const at = pieces.take(2 * tile_margin<T>() + kExactRows * tile_stride(head));
  return at == nullptr ? at : at + tile_margin<T>();
}

/// The table's entries between these rows and keys, in the direction of the keys.
template <class U, class T>
MatView<U> lags_of(const ExactHead<T>& head, MatView<U> table) {
  const int64_t n = head.q.rows, m = head.k.rows;
  return table.slice(head.lag_zero - (m - 1), head.lag_zero + n).reversed();
}

/// How many of them the products read: all, or those up to lag 0 and, since several
/// rows are multiplied at once, a few more.
template <class T>
HWY_INLINE int64_t lags_read(const ExactHead<T>& head) {
  constexpr int64_t kFew = 8;
  const int64_t n = head.q.rows, all = n + head.k.rows - 1;
  if (!head.sight.causal) return all;
  return std::min(all, std::max<int64_t>(0, n + head.sight.shift + kFew));
}
template <class U, class T>
MatView<U> lags_read_of(const ExactHead<T>& head, MatView<U> table) {
  return lags_of(head, table).slice(0, lags_read(head));
}

/// x [rows, cols] times factor -> row panels, to [cols / W][rows][W].
template <class T>
HWY_NOINLINE void pack_rows(MatView<const T> x, T factor, T* to) {
  if (!to) return;
  const int64_t width = panel_width<T>();
  const Rows<T> rows = {.x = x, .scale = {&factor, x.rows, 1, 0, 1}};
  load_rows(rows, 0, x.rows, Block<T>{to, width, x.rows * width});
}

/// x [rows, cols] times factor -> panels of its transpose, to [rows / W][cols][W],
/// the last one filled up with zeros. `space`: one panel of rows.
template <class T>
HWY_NOINLINE void pack_columns(MatView<const T> x, T factor, T* to, T* space) {
  if (!to) return;
  const int64_t width = panel_width<T>(), padded = round_up(x.cols, width);
  const Rows<T> rows = {.x = x, .scale = {&factor, x.rows, 1, 0, 1}};
  for (int64_t i = 0; i < x.rows; i += width) {
    const int64_t count = std::min(width, x.rows - i);
    load_rows(rows, i, count, Block<T>{space, padded, width});
    std::fill(space + count * padded, space + width * padded, T{0});
    transpose_to_panels(space, width, x.cols, padded, to + i * padded);
  }
}

/// Zeros wherever a row does not see: inside the tile, and in its margins.
template <class T>
HWY_NOINLINE void clear_unseen(const ExactTile& t, T* tile) {
  const bool skewed = t.stride > kExactKeys;
  if (skewed) std::fill(tile - tile_margin<T>(), tile, T{0});
  for (int64_t a = 0; a < t.rows; ++a) {
    T* const row = tile + a * t.stride;
    const Range seen = t.seen[a].empty() ? Range{0, 0} : t.seen[a];
    std::fill(row, row + seen.lo, T{0});
    const int64_t end = skewed ? t.stride : round_up(t.keys, panel_width<T>());
    std::fill(row + seen.hi, row + end, T{0});
  }
}

/// exp(x) for x <= 0, down to exp(-inf) = 0; NaN stays, whatever its bits.
template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V exp_or_zero(Tag tag, V x) {
  if constexpr (sizeof(hn::TFromD<Tag>) == 8) {
    return hn::IfThenElse(hn::Eq(x, x), hn::Exp(tag, x), x);
  } else {
    const auto y = hn::MulAdd(x, hn::Zero(tag), exp_of_negative(tag, x));
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(tag, -87.0f)), y);
  }
}

/// What the rows of a tile subtract from every key's bias, which their softmax does not
/// see: the bias of the last key in sight. A forget gate's biases grow along the whole
/// sequence, and in f32 their sum with a score would lose its last digits.
template <class T>
HWY_INLINE T bias_origin(const ExactHead<T>& head, const ExactTile& t) {
  const int64_t end = seen_by(head.sight, t.row + t.rows - 1, head.k.rows).hi;
  const T last = end > 0 ? head.key_bias(end - 1, 0) : T{0};
  return std::isfinite(last) ? last : T{0};
}

/// Adds the bias of its key to every score of a tile.
template <class T>
HWY_NOINLINE void add_key_bias(const ExactHead<T>& head, const ExactTile& t, T* tile) {
  if (!head.key_bias.data) return;
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const T origin = bias_origin(head, t);
  T bias[kExactKeys] = {};
  for (int64_t b = 0; b < t.keys; ++b) bias[b] = head.key_bias(t.key + b, 0) - origin;
  for (int64_t a = 0; a < t.rows; ++a) {
    T* const row = tile + a * t.stride;
    for (int64_t b = 0; b < t.keys; b += lanes)
      hn::StoreU(hn::Add(hn::LoadU(tag, row + b), hn::LoadU(tag, bias + b)), tag,
                 row + b);
  }
}

/// Adds the bias of row a and returns the largest score; what the row does not see
/// becomes -inf, in whole vectors.
template <class T>
HWY_INLINE T finish_scores(const ExactTile& t, const T* bias, int64_t a, T* row) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  constexpr T kNever = -std::numeric_limits<T>::infinity();
  const int64_t end = round_up(t.keys, lanes);
  std::fill(row, row + t.seen[a].lo, kNever);
  std::fill(row + t.seen[a].hi, row + end, kNever);
  auto largest = hn::Set(tag, kNever);
  if (!bias) {
    for (int64_t b = 0; b < end; b += lanes)
      largest = hn::Max(largest, hn::LoadU(tag, row + b));
  } else {
    const T* const from = bias + t.base - a;
    for (int64_t b = 0; b < end; b += lanes) {
      const auto s = hn::Add(hn::LoadU(tag, row + b), hn::LoadU(tag, from + b));
      hn::StoreU(s, tag, row + b);
      largest = hn::Max(largest, s);
    }
  }
  return hn::GetLane(hn::MaxOfLanes(tag, largest));
}

/// row[b] = exp(row[b] + bias[b] - largest) factor over whole vectors.
template <bool kBiased, class T>
HWY_INLINE void weigh_row(T* row, const T* bias, int64_t keys, T largest, T factor) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const auto top = hn::Set(tag, largest), f = hn::Set(tag, factor);
  for (int64_t b = 0; b < keys; b += lanes) {
    auto s = hn::LoadU(tag, row + b);
    if constexpr (kBiased) s = hn::Add(s, hn::LoadU(tag, bias + b));
    hn::StoreU(hn::Mul(exp_or_zero(tag, hn::Sub(s, top)), f), tag, row + b);
  }
}

/// row[b] = exp(row[b] - largest) factor; returns the sum.
template <class T>
HWY_INLINE T exponentiate(T* row, int64_t keys, T largest, T factor) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const auto top = hn::Set(tag, largest), f = hn::Set(tag, factor);
  auto sum = hn::Zero(tag);
  for (int64_t b = 0; b < keys; b += lanes) {
    const auto w = hn::Mul(exp_or_zero(tag, hn::Sub(hn::LoadU(tag, row + b), top)), f);
    hn::StoreU(w, tag, row + b);
    sum = hn::Add(sum, w);
  }
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
