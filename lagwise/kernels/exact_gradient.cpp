#include <algorithm>

#include "lagwise/kernels/exact_attention.h"

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/exact_gradient.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/exact_products-inl.h"
#include "lagwise/kernels/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

/// What the backward pass reads. Each matrix stands in the order of the product it
/// serves: by columns to be multiplied from the left, by rows to be summed.
template <class T>
struct GradientPack {
  int64_t width, d, e, lags;  // widths padded to whole panels
  T* k_columns;               // [M / W][D][W]  scale k
  T* k;                       // [D / W][M][W]  scale k
  T* v_columns;               // [M / W][E][W]
  T* q;                       // [D / W][N][W]
  T* g;                       // [E / W][N][W]  the gradient of the output
  T* through;                 // [N]  g_i . o_i
  T* bias;                    // [N + M - 1]
  T* lag_k_columns;           // [lags / W][D][W]  scale lag_keys
  T* lag_k;                   // [D / W][lags][W]  scale lag_keys
  T* lag_v_columns;           // [lags / W][E][W]
  T* space;                   // [W, D or E]
  int64_t used;               // numbers in all

  GradientPack(const ExactHead<T>& head, T* at)
      : width(panel_width<T>()),
        d(round_up(head.q.cols, width)),
        e(round_up(head.v.cols, width)),
        lags(lags_read(head)) {
    const int64_t n = head.q.rows, m = head.k.rows;
    const bool has_keys = head.lag_keys.data, has_values = head.lag_values.data;
    Scratch<T> pieces(at);
    k_columns = pieces.take(round_up(m, width) * d);
    k = pieces.take(m * d);
    v_columns = pieces.take(round_up(m, width) * e);
    q = pieces.take(n * d);
    g = pieces.take(n * e);
    through = pieces.take(n);
    bias = pieces.take(n + m + 2 * width, head.lag_bias.data != nullptr);
    lag_k_columns = pieces.take(round_up(lags, width) * d, has_keys);
    lag_k = pieces.take(lags * d, has_keys);
    lag_v_columns = pieces.take(round_up(lags, width) * e, has_values);
    space = pieces.take(width * std::max(d, e));
    used = pieces.used();
  }
};

/// The scratch of one range of keys: two tiles, and sums in panels.
template <class T>
struct GradientSums {
  T* weights;  // tile
  T* scores;   // tile of d loss / d weights, then d loss / d scores
  T* band;     // [kExactRows + kExactKeys + W]  gradient of the bias from one tile
  T* q;        // [D / W][N][W]
  T* k;        // [D / W][keys][W]
  T* v;        // [E / W][keys][W]
  T* lag_k;    // [D / W][lags][W]
  T* lag_v;    // [E / W][lags][W]
  T* factor;   // [N, keys or lags]  of store_panel
  T* begin;    // of all sums
  T* end;
  int64_t keys, used;

  GradientSums(const ExactHead<T>& head, int64_t keys_, T* at) : keys(keys_) {
    const int64_t width = panel_width<T>(), n = head.q.rows;
    const int64_t d = round_up(head.q.cols, width), e = round_up(head.v.cols, width);
    const int64_t lags = lags_read(head);
    Scratch<T> pieces(at);
    weights = take_tile(pieces, head);
    scores = take_tile(pieces, head);
    band = pieces.take(kExactRows + kExactKeys + 2 * width);
    factor = pieces.take(std::max(std::max(n, keys), lags));
    begin = pieces.take(0);
    q = pieces.take(n * d);
    k = pieces.take(keys * d);
    v = pieces.take(keys * e);
    lag_k = pieces.take(lags * d, head.lag_keys.data != nullptr);
    lag_v = pieces.take(lags * e, head.lag_values.data != nullptr);
    end = pieces.take(0);
    used = pieces.used();
  }
};

template <class T>
void gradient_pack_of(const ExactHead<T>& head, MatView<const T> out,
                      MatView<const T> d_out, T* packed) noexcept {
  const GradientPack<T> p(head, packed);
  pack_columns<T>(head.k, head.scale, p.k_columns, p.space);
  pack_rows<T>(head.k, head.scale, p.k);
  pack_columns<T>(head.v, T{1}, p.v_columns, p.space);
  pack_rows<T>(head.q, T{1}, p.q);
  pack_rows<T>(d_out, T{1}, p.g);
  for (int64_t i = 0; i < out.rows; ++i) {
    double sum = 0;
    for (int64_t x = 0; x < out.cols; ++x)
      sum += static_cast<double>(out(i, x)) * static_cast<double>(d_out(i, x));
    p.through[i] = static_cast<T>(sum);
  }
  if (p.bias) {
    const auto bias = lags_of(head, head.lag_bias);
    for (int64_t c = 0; c < bias.rows; ++c) p.bias[c] = bias(c, 0);
    std::fill(p.bias + bias.rows, p.bias + bias.rows + 2 * p.width, T{0});
  }
  if (p.lag_k) {
    pack_columns<T>(lags_read_of(head, head.lag_keys), head.scale, p.lag_k_columns,
                    p.space);
    pack_rows<T>(lags_read_of(head, head.lag_keys), head.scale, p.lag_k);
  }
  if (p.lag_v_columns)
    pack_columns<T>(lags_read_of(head, head.lag_values), T{1}, p.lag_v_columns,
                    p.space);
}

/// Turns scores into the weights of the forward pass, with its `stats`.
template <class T>
HWY_NOINLINE void weigh_again(const ExactTile& t, const T* bias, MatView<const T> stats,
                              T* tile) {
  for (int64_t a = 0; a < t.rows; ++a) {
    const T inverse = stats(t.row + a, 1);
    T* const row = tile + a * t.stride;
    if (t.seen[a].empty() || inverse == T{0}) {
      std::fill(row, row + round_up(t.keys, panel_width<T>()), T{0});
      continue;
    }
    const T largest = stats(t.row + a, 0);
    if (bias)
      weigh_row<true>(row, bias + t.base - a, t.keys, largest, inverse);
    else
      weigh_row<false, T>(row, nullptr, t.keys, largest, inverse);
    std::fill(row, row + t.seen[a].lo, T{0});
    std::fill(row + t.seen[a].hi, row + round_up(t.keys, panel_width<T>()), T{0});
  }
}

/// ds_ij = w_ij (dp_ij - g_i . o_i), in place of dp. A row that sees one key alone
/// weighs it by 1 whatever its score: there dp = g . o but for rounding, and ds = 0.
template <class T>
HWY_NOINLINE void through_softmax(const ExactHead<T>& head, const ExactTile& t,
                                  const T* through, const T* weights, T* tile) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  for (int64_t a = 0; a < t.rows; ++a) {
    const auto mean = hn::Set(tag, through[t.row + a]);
    const T* const w = weights + a * t.stride;
    T* const row = tile + a * t.stride;
    const Range all = seen_by(head.sight, t.row + a, head.k.rows);
    if (all.hi - all.lo == 1) {
      for (int64_t b = 0; b < t.keys; b += lanes)  // a NaN stays
        hn::StoreU(hn::Mul(hn::LoadU(tag, w + b), hn::Zero(tag)), tag, row + b);
      continue;
    }
    for (int64_t b = 0; b < t.keys; b += lanes) {
      const auto dp = hn::Sub(hn::LoadU(tag, row + b), mean);
      hn::StoreU(hn::Mul(hn::LoadU(tag, w + b), dp), tag, row + b);
    }
  }
}

/// Adds a tile's share of d lag_bias: first summed over the tile, then added to the
/// whole, because sums of sums round less than one long sum.
template <class T>
HWY_NOINLINE void add_bias(const ExactTile& t, const T* tile, T* band,
                           MatView<T> sums) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const int64_t whole = round_up(t.keys, lanes);
  std::fill(band, band + t.rows + whole, T{0});
  for (int64_t a = 0; a < t.rows; ++a) {
    const T* const from = tile + a * t.stride;
    T* const to = band + t.rows - 1 - a;
    for (int64_t b = 0; b < whole; b += lanes)
      hn::StoreU(hn::Add(hn::LoadU(tag, to + b), hn::LoadU(tag, from + b)), tag,
                 to + b);
  }
  for (int64_t c = 0; c < t.lags(); ++c) sums(t.first_lag() + c, 0) += band[c];
}

/// Adds a tile's share of d key_bias: the sums of its columns.
template <class T>
HWY_NOINLINE void add_columns(const ExactTile& t, const T* tile, T* band,
                              MatView<T> sums) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  std::fill(band, band + round_up(t.keys, lanes), T{0});
  for (int64_t a = 0; a < t.rows; ++a) {
    const T* const from = tile + a * t.stride;
    for (int64_t b = 0; b < t.keys; b += lanes)
      hn::StoreU(hn::Add(hn::LoadU(tag, band + b), hn::LoadU(tag, from + b)), tag,
                 band + b);
  }
  for (int64_t b = 0; b < t.keys; ++b) sums(t.key + b, 0) += band[b];
}

/// The five products of a tile, and those with the tables.
template <class T>
HWY_NOINLINE void add_tile(const ExactHead<T>& head, const GradientPack<T>& p,
                           const ExactTile& t, int64_t begin, GradientSums<T>& w) {
  const int64_t width = p.width, d = p.d / width, e = p.e / width;
  // Row `first` and on of a matrix of `rows` rows.
  const auto part = [width](auto* panels, int64_t rows, int64_t first) {
    return Panels<std::remove_reference_t<decltype(*panels)>>{panels + first * width,
                                                              rows * width};
  };
  const int64_t n = head.q.rows, key = t.key - begin, lag = t.first_lag();
  const Panels<const T> q = part(static_cast<const T*>(p.q), n, t.row);
  const Panels<const T> g = part(static_cast<const T*>(p.g), n, t.row);
  const Panels<const T> k = part(static_cast<const T*>(p.k), head.k.rows, t.key);
  const Panels<T> dq = part(w.q, n, t.row);
  sum_rows<kByKey, T>(t, w.weights, g, part(w.v, w.keys, key), e);
  if (w.lag_v) sum_rows<kByLag, T>(t, w.weights, g, part(w.lag_v, p.lags, lag), e);
  sum_rows<kByKey, T>(t, w.scores, q, part(w.k, w.keys, key), d);
  sum_keys<kByKey, T>(t, w.scores, k, dq, d);
  if (!w.lag_k) return;
  sum_rows<kByLag, T>(t, w.scores, q, part(w.lag_k, p.lags, lag), d);
  sum_keys<kByLag, T>(t, w.scores, part(static_cast<const T*>(p.lag_k), p.lags, lag),
                      dq, d);
}

/// Panels of sums times a factor -> rows of `to`.
template <class T>
void store_sums(const T* panels, int64_t rows, T factor, MatView<T> to, T* factors) {
  if (!to.data || rows == 0) return;
  const int64_t width = panel_width<T>();
  std::fill(factors, factors + rows, factor);
  for (int64_t first = 0; first < to.cols; first += width)
    store_panel<T>({.out = to}, 0, rows, first, factors,
                   const_cast<T*>(panels) + first * rows);
}

template <class T>
MatView<T> cleared(MatView<T> x) {
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < x.cols; ++j) x(i, j) = T{0};
  return x;
}

/// The entries of a table's gradient that this head reads; the rest become zero.
template <class T>
MatView<T> read_by(const ExactHead<T>& head, MatView<T> table) {
  if (!table.data) return table;
  const int64_t end = head.lag_zero + head.q.rows;
  cleared(table.slice(0, end - lags_read(head)));
  cleared(table.slice(end, table.rows));
  return lags_read_of(head, table);
}

template <class T>
void gradient_of(const ExactHead<T>& head, MatView<const T> d_out,
                 MatView<const T> stats, const T* packed, int64_t begin, int64_t end,
                 const ExactGradients<T>& to, T* scratch) noexcept {
  const GradientPack<T> p(head, const_cast<T*>(packed));  // only read from here on
  GradientSums<T> w(head, end - begin, scratch);
  std::fill(w.begin, w.end, T{0});
  const MatView<T> d_bias =
      to.lag_bias.data ? lags_of(head, cleared(to.lag_bias)) : to.lag_bias;
  if (to.key_bias.data) cleared(to.key_bias.slice(begin, end));
  const int64_t n = head.q.rows, m = head.k.rows, stride = tile_stride(head);
  const bool skewed = stride > kExactKeys;
  for (int64_t key = begin; key < end; key += kExactKeys)
    for (int64_t row = 0; row < n; row += kExactRows) {
      const ExactTile t =
          make_tile(head.sight, n, m, row, std::min(kExactRows, n - row),
                    {key, std::min(key + kExactKeys, end)}, p.width, stride);
      if (t.keys == 0) continue;
      pair_products<T>(t, head.q, p.k_columns, p.lag_k_columns, w.weights);
      add_key_bias(head, t, w.weights);
      weigh_again<T>(t, p.bias, stats, w.weights);
      pair_products<T>(t, d_out, p.v_columns, p.lag_v_columns, w.scores);
      through_softmax<T>(head, t, p.through, w.weights, w.scores);
      if (skewed || !t.whole) clear_unseen(t, w.scores);
      if (w.lag_v) clear_unseen(t, w.weights);
      if (d_bias.data) add_bias(t, w.scores, w.band, d_bias);
      if (to.key_bias.data) add_columns(t, w.scores, w.band, to.key_bias);
      add_tile(head, p, t, begin, w);
    }
  store_sums(w.q, n, T{1}, to.q, w.factor);
  store_sums(w.k, w.keys, head.scale, to.k.data ? to.k.slice(begin, end) : to.k,
             w.factor);
  store_sums(w.v, w.keys, T{1}, to.v.data ? to.v.slice(begin, end) : to.v, w.factor);
  store_sums(w.lag_k, p.lags, head.scale, read_by(head, to.lag_keys), w.factor);
  store_sums(w.lag_v, p.lags, T{1}, read_by(head, to.lag_values), w.factor);
}

template <class T>
int64_t gradient_packed_of(const ExactHead<T>& head) {
  return GradientPack<T>(head, nullptr).used;
}
template <class T>
int64_t gradient_scratch_of(const ExactHead<T>& head, int64_t keys) {
  return GradientSums<T>(head, keys, nullptr).used;
}

template <class T>
constexpr Kernels<exact_gradient_pack<T>, exact_gradient<T>, exact_gradient_packed<T>,
                  exact_gradient_scratch<T>>
    kKernels = {{gradient_pack_of<T>},
                {gradient_of<T>},
                {gradient_packed_of<T>},
                {gradient_scratch_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void exact_gradient_pack(const ExactHead<T>& head, MatView<const T> out,
                         MatView<const T> d_out, T* packed) noexcept {
  chosen<T, exact_gradient_pack<T>>(head, out, d_out, packed);
}
template <class T>
void exact_gradient(const ExactHead<T>& head, MatView<const T> d_out,
                    MatView<const T> stats, const T* packed, int64_t begin, int64_t end,
                    const ExactGradients<T>& to, T* scratch) noexcept {
  chosen<T, exact_gradient<T>>(head, d_out, stats, packed, begin, end, to, scratch);
}
template <class T>
int64_t exact_gradient_packed(const ExactHead<T>& head) {
  return chosen<T, exact_gradient_packed<T>>(head);
}
template <class T>
int64_t exact_gradient_scratch(const ExactHead<T>& head, int64_t keys) {
  return chosen<T, exact_gradient_scratch<T>>(head, keys);
}

LAGWISE_INSTANTIATE(exact_gradient_pack)
LAGWISE_INSTANTIATE(exact_gradient)
LAGWISE_INSTANTIATE(exact_gradient_packed)
LAGWISE_INSTANTIATE(exact_gradient_scratch)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
