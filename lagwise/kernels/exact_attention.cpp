#include "lagwise/kernels/exact_attention.h"

#include <algorithm>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/exact_attention.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/exact_products-inl.h"
#include "lagwise/kernels/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

/// What the forward pass reads besides the queries. W the width of a panel.
template <class T>
struct ForwardPack {
  int64_t width, d, e, lags;  // widths padded to whole panels
  T* k;                       // [M / W][D][W]  scale k, by columns
  T* v;                       // [E / W][M][W]
  T* bias;                    // [N + M - 1]
  T* lag_k;                   // [lags / W][D][W]  scale lag_keys, by columns
  T* lag_v;                   // [E / W][lags][W]
  T* space;                   // [W, D]
  int64_t used;               // numbers in all

  ForwardPack(const ExactHead<T>& head, T* at)
      : width(panel_width<T>()),
        d(round_up(head.q.cols, width)),
        e(round_up(head.v.cols, width)),
        lags(lags_read(head)) {
    Scratch<T> pieces(at);
    k = pieces.take(round_up(head.k.rows, width) * d);
    v = pieces.take(head.k.rows * e);
    bias = pieces.take(head.q.rows + head.k.rows + 2 * width,
                       head.lag_bias.data != nullptr);
    lag_k = pieces.take(round_up(lags, width) * d, head.lag_keys.data != nullptr);
    lag_v = pieces.take(lags * e, head.lag_values.data != nullptr);
    space = pieces.take(width * d);
    used = pieces.used();
  }
};

/// The scratch of a block of rows.
template <class T>
struct Rolling {
  T* tile;
  T* o;        // [E / W][kExactRows][W]  sum of exp(s - largest) v
  T* largest;  // [kExactRows]
  T* sum;      // [kExactRows]  of exp(s - largest)
  T* factor;   // [kExactRows]  what the past is multiplied by
  int64_t used;

  Rolling(const ExactHead<T>& head, T* at) {
    Scratch<T> pieces(at);
    tile = take_tile(pieces, head);
    o = pieces.take(kExactRows * round_up(head.v.cols, panel_width<T>()));
    largest = pieces.take(kExactRows);
    sum = pieces.take(kExactRows);
    factor = pieces.take(kExactRows);
    used = pieces.used();
  }
};

template <class T>
void pack_of(const ExactHead<T>& head, T* packed) noexcept {
  const ForwardPack<T> p(head, packed);
  pack_columns<T>(head.k, head.scale, p.k, p.space);
  pack_rows<T>(head.v, T{1}, p.v);
  if (p.bias) {
    const auto bias = lags_of(head, head.lag_bias);
    for (int64_t c = 0; c < bias.rows; ++c) p.bias[c] = bias(c, 0);
    std::fill(p.bias + bias.rows, p.bias + bias.rows + 2 * p.width, T{0});
  }
  if (p.lag_k)
    pack_columns<T>(lags_read_of(head, head.lag_keys), head.scale, p.lag_k, p.space);
  if (p.lag_v) pack_rows<T>(lags_read_of(head, head.lag_values), T{1}, p.lag_v);
}

template <class T>
bool holds_nan(const T* row, Range seen) {
  for (int64_t b = seen.lo; b < seen.hi; ++b)
    if (std::isnan(row[b])) return true;
  return false;
}

/// Whether row i has nothing to attend to: it sees no key, or biases hide them all.
template <class T>
bool sees_nothing(const ExactHead<T>& head, const T* bias, int64_t i) {
  constexpr T kNever = -std::numeric_limits<T>::infinity();
  const Range seen = seen_by(head.sight, i, head.k.rows);
  const T* const by_lag = bias ? bias + head.q.rows - 1 - i : nullptr;
  bool nothing = true;
  for (int64_t j = seen.lo; nothing && j < seen.hi; ++j)
    nothing = (by_lag && by_lag[j] == kNever) ||
              (head.key_bias.data && head.key_bias(j, 0) == kNever);
  return nothing;
}

/// Turns scores into exp(s - largest), with the largest score so far, and computes the
/// factors exp(old largest - new largest) for what was summed before.
template <class T>
HWY_NOINLINE void roll_softmax(const ExactTile& t, const T* bias, Rolling<T>& w) {
  constexpr T kNever = -std::numeric_limits<T>::infinity();
  for (int64_t a = 0; a < t.rows; ++a) {
    T* const row = w.tile + a * t.stride;
    w.factor[a] = T{1};
    const T before = w.largest[a];
    const bool blind = t.seen[a].empty();
    const T now = blind ? before : finish_scores(t, bias, a, row);
    const T top = now < before ? before : now;  // NaN: the scores', not the past's
    if (blind || top == kNever) {
      // The maximum may lose a NaN between -inf; beside any number the sum finds it.
      if (!blind && holds_nan(row, t.seen[a]))
        w.largest[a] = w.sum[a] = std::numeric_limits<T>::quiet_NaN();
      std::fill(row, row + round_up(t.keys, panel_width<T>()), T{0});
      continue;
    }
    if (top != before) w.factor[a] = std::exp(before - top);
    w.largest[a] = top;
    w.sum[a] = w.sum[a] * w.factor[a] + exponentiate(row, t.keys, top, T{1});
  }
}

/// o = factor o + weights (v + lag_values) for one panel of columns.
template <class T>
HWY_NOINLINE void add_values(const ExactTile& t, const ForwardPack<T>& p,
                             const ExactHead<T>& head, int64_t panel, Rolling<T>& w) {
  const hn::ScalableTag<T> tag;
  const int64_t width = p.width;
  T* const o = w.o + panel * kExactRows * width;
  for (int64_t a = 0; a < t.rows; ++a) {
    if (w.factor[a] == T{1}) continue;
    const auto f = hn::Set(tag, w.factor[a]);
    auto left = f, right = f;
    load_pair(tag, o + a * width, left, right);
    store_pair(tag, hn::Mul(left, f), hn::Mul(right, f), o + a * width);
  }
  const T* v = p.v + (panel * head.v.rows + t.key) * width;
  if (t.whole)
    multiply<T>({w.tile, t.stride, 1}, v, width, o, width, t.rows, t.keys, true);
  else
    multiply_seen(t, w.tile, v, o);
  if (p.lag_v)
    sum_keys<kByLag, T>(
        t, w.tile, {p.lag_v + (panel * p.lags + t.first_lag()) * width, 0}, {o, 0}, 1);
}

template <class T>
void block_of(const ExactHead<T>& head, const ForwardPack<T>& p, int64_t row,
              int64_t rows, MatView<T> out, MatView<T> stats, T* scratch) {
  constexpr T kNever = -std::numeric_limits<T>::infinity();
  Rolling<T> w(head, scratch);
  std::fill(w.o, w.o + kExactRows * p.e, T{0});
  std::fill(w.largest, w.largest + rows, kNever);
  std::fill(w.sum, w.sum + rows, T{0});
  const int64_t m = head.k.rows, stride = tile_stride(head);
  const int64_t end = seen_by(head.sight, row + rows - 1, m).hi;
  int64_t key = seen_by(head.sight, row, m).lo / p.width * p.width;
  for (; key < end; key += kExactKeys) {
    const ExactTile t =
        make_tile(head.sight, head.q.rows, m, row, rows,
                  {key, std::min(key + kExactKeys, m)}, p.width, stride);
    if (t.keys == 0) continue;
    pair_products<T>(t, head.q, p.k, p.lag_k, w.tile);
    add_key_bias(head, t, w.tile);
    roll_softmax<T>(t, p.bias, w);
    if (p.lag_v) clear_unseen(t, w.tile);
    for (int64_t panel = 0; panel * p.width < p.e; ++panel)
      add_values(t, p, head, panel, w);
  }
  for (int64_t a = 0; a < rows; ++a) {
    const bool weightless = w.largest[a] == kNever;  // 0 / 0, unless nothing is seen
    const bool blind = weightless && sees_nothing(head, p.bias, row + a);
    w.factor[a] = blind ? T{0} : T{1} / w.sum[a];
    if (weightless && !blind) w.factor[a] = std::numeric_limits<T>::quiet_NaN();
    stats(row + a, 0) = weightless ? T{0} : w.largest[a];
    stats(row + a, 1) = w.factor[a];
  }
  for (int64_t panel = 0; panel * p.width < head.v.cols; ++panel)
    store_panel<T>({.out = out}, row, rows, panel * p.width, w.factor,
                   w.o + panel * kExactRows * p.width);
}

template <class T>
void rows_of(const ExactHead<T>& head, const T* packed, int64_t begin, int64_t end,
             MatView<T> out, MatView<T> stats, T* scratch) noexcept {
  const ForwardPack<T> p(head, const_cast<T*>(packed));  // only read from here on
  for (int64_t row = begin; row < end; row += kExactRows)
    block_of(head, p, row, std::min(kExactRows, end - row), out, stats, scratch);
}

template <class T>
int64_t packed_of(const ExactHead<T>& head) {
  return ForwardPack<T>(head, nullptr).used;
}
template <class T>
int64_t scratch_of(const ExactHead<T>& head) {
  return Rolling<T>(head, nullptr).used;
}

template <class T>
constexpr Kernels<exact_pack<T>, exact_rows<T>, exact_packed<T>, exact_scratch<T>>
    kKernels = {{pack_of<T>}, {rows_of<T>}, {packed_of<T>}, {scratch_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void exact_pack(const ExactHead<T>& head, T* packed) noexcept {
  chosen<T, exact_pack<T>>(head, packed);
}
template <class T>
void exact_rows(const ExactHead<T>& head, const T* packed, int64_t begin, int64_t end,
                MatView<T> out, MatView<T> stats, T* scratch) noexcept {
  chosen<T, exact_rows<T>>(head, packed, begin, end, out, stats, scratch);
}
template <class T>
int64_t exact_packed(const ExactHead<T>& head) {
  return chosen<T, exact_packed<T>>(head);
}
template <class T>
int64_t exact_scratch(const ExactHead<T>& head) {
  return chosen<T, exact_scratch<T>>(head);
}

LAGWISE_INSTANTIATE(exact_pack)
LAGWISE_INSTANTIATE(exact_rows)
LAGWISE_INSTANTIATE(exact_packed)
LAGWISE_INSTANTIATE(exact_scratch)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
