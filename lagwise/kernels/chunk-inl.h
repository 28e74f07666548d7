// What a pass over chunks works with: its scratch (Work), the powers of its decay
// (Fade), and a few loops over whole vectors.

#if defined(LAGWISE_KERNELS_CHUNK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LAGWISE_KERNELS_CHUNK_INL_H_
#undef LAGWISE_KERNELS_CHUNK_INL_H_
#else
#define LAGWISE_KERNELS_CHUNK_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "hwy/highway.h"
#include "lagwise/kernels/linear_attention.h"
#include "lagwise/kernels/simd/rows-inl.h"
#include "lagwise/kernels/simd/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Rows of a chunk. With longer chunks there are more pairs inside each, but the state
// is read and written less often: between 16 and 32 rows the time hardly changes, but
// where a panel has 32 columns (AVX-512) pairs of 16 would fill half of one.
constexpr int64_t kChunk = HWY_MAX_BYTES >= 64 ? 32 : 16;
/// Numbers from one row of the pairs of a chunk to the next.
template <class T>
HWY_INLINE int64_t pair_stride() {
  return round_up(kChunk, panel_width<T>());
}
constexpr int64_t kPlainChunk = 64;  // of absorb and read_state, without pairs

/// The scratch of one pass. C rows of a chunk (room for the longest), D and E the
/// widths padded to whole panels, W the width of a panel.
template <class T>
struct Work {
  int64_t d, d_padded, e, width, panels;
  T* q;          // [C, D]
  T* q_far;      // [C, D]    queries as the state sees them, decayed by channel
  T* k;          // [C, D]
  T* k_t;        // [C / W][D][W]
  T* scores;     // [C, C]    (q_a . k_b) g^(a-b) for b <= a, else 0
  T* v;          // [E / W][C][W]
  T* o;          // [C, W]    one panel of results
  T* s;          // [E / W][d][W]
  T* z;          // [D]
  T* factor;     // [C]       what each row of the result is multiplied by
  T* power;      // [3 C + 1] or [C + 1, D or E]: see Fade
  T* gates;      // [C + 1, C]
  Left<T> near;  // queries as the keys of the chunk see them
  Left<T> far;   // and as the state sees them
  Block<const T> values;  // what v holds, or the same rows in the caller's memory
  Ahead<T> ahead;

  Work(int64_t d_, int64_t e_, Scratch<T>& scratch)
      : d(d_),
        d_padded(round_up(d_, panel_width<T>())),
        e(e_),
        width(panel_width<T>()),
        panels(round_up(e_, width) / width) {
    constexpr int64_t kRows = kPlainChunk;
    q = scratch.take(kRows * d_padded);
    q_far = scratch.take(kRows * d_padded);
    k = scratch.take(kRows * d_padded);
    k_t = scratch.take(round_up(kRows, width) * d_padded);
    scores = scratch.take(kRows * round_up(kRows, width));
    v = scratch.take(kRows * width * panels);
    o = scratch.take(kRows * width);
    s = scratch.take(panels * d * width);
    z = scratch.take(d_padded);
    factor = scratch.take(kRows);
    power = scratch.take(3 * kChunk + 1 +
                         (kChunk + 1) * std::max(d_padded, panels * width));
    gates = scratch.take((kChunk + 1) * pair_stride<T>());
    near = far = {q, d_padded, 1};
    values = {v, width, kChunk * width};
  }

  /// Queries or keys: row by row.
  Block<T> dense(T* to) const { return {to, d_padded, width}; }
  /// Values of a chunk: panel by panel.
  Block<T> panels_of(int64_t chunk) const { return {v, width, chunk * width}; }
};

/// x[0, n) *= y[0, n), n rounded up to whole vectors.
template <class T>
HWY_INLINE void scale_by(T* HWY_RESTRICT x, const T* HWY_RESTRICT y, int64_t n) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  for (int64_t j = 0; j < n; j += lanes)
    hn::StoreU(hn::Mul(hn::LoadU(tag, x + j), hn::LoadU(tag, y + j)), tag, x + j);
}

/// x[0, n) *= factor, n rounded up to whole vectors.
template <class T>
HWY_INLINE void scale_by(T* HWY_RESTRICT x, T factor, int64_t n) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const auto f = hn::Set(tag, factor);
  for (int64_t j = 0; j < n; j += lanes)
    hn::StoreU(hn::Mul(hn::LoadU(tag, x + j), f), tag, x + j);
}

/// x . y over whole vectors.
template <class T>
HWY_INLINE T dot(const T* x, const T* y, int64_t n) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  auto sum = hn::Zero(tag);
  for (int64_t j = 0; j < n; j += lanes)
    sum = hn::MulAdd(hn::LoadU(tag, x + j), hn::LoadU(tag, y + j), sum);
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

/// sum_j x_j y_j f_j over whole vectors.
template <class T>
HWY_INLINE T dot(const T* x, const T* y, const T* f, int64_t n) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  auto sum = hn::Zero(tag);
  for (int64_t j = 0; j < n; j += lanes) {
    const auto xf = hn::Mul(hn::LoadU(tag, x + j), hn::LoadU(tag, f + j));
    sum = hn::MulAdd(xf, hn::LoadU(tag, y + j), sum);
  }
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

/// x[0, n) += a f[0, n) y[0, n); without f, x += a y. Whole vectors.
template <class T>
HWY_INLINE void add_scaled(T* HWY_RESTRICT x, T a, const T* y, const T* f, int64_t n) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const auto factor = hn::Set(tag, a);
  for (int64_t j = 0; j < n; j += lanes) {
    const auto af = f ? hn::Mul(factor, hn::LoadU(tag, f + j)) : factor;
    hn::StoreU(hn::MulAdd(af, hn::LoadU(tag, y + j), hn::LoadU(tag, x + j)), tag,
               x + j);
  }
}

/// s [D, E] -> panels, to [E / W][D][W].
template <class T>
HWY_NOINLINE void load_state(MatView<const T> s, const Work<T>& w, T* panels) {
  for (int64_t p = 0; p < w.panels; ++p)
    for (int64_t i = 0; i < w.d; ++i) {
      T* to = panels + (p * w.d + i) * w.width;
      const int64_t first = p * w.width, cols = std::min(w.width, w.e - first);
      if (s.col_step == 1)
        std::copy_n(s.row(i) + first, cols, to);
      else
        for (int64_t j = 0; j < cols; ++j) to[j] = s(i, first + j);
      std::fill(to + cols, to + w.width, T{0});
    }
}

template <class T>
HWY_NOINLINE void store_state(const Work<T>& w, const T* panels, MatView<T> s) {
  for (int64_t p = 0; p < w.panels; ++p)
    for (int64_t i = 0; i < w.d; ++i) {
      const T* from = panels + (p * w.d + i) * w.width;
      const int64_t first = p * w.width, cols = std::min(w.width, w.e - first);
      if (s.col_step == 1)
        std::copy_n(from, cols, s.row(i) + first);
      else
        for (int64_t j = 0; j < cols; ++j) s(i, first + j) = from[j];
    }
}

/// By how much the rows of a chunk fade: the powers g^0 .. g^chunk of a decay that is the
/// same for all rows, and products of factors where rows have a gate. Never g^-n: it
/// overflows.
template <class T>
class Fade {
 public:
  using By = typename Decay<T>::By;
  const int64_t chunk;  // rows of one, at most kChunk
  By by;
  int64_t span;  // numbers in one power: 1, D or E
  // Where all channels share a factor (`by_row`: By::head, or gates), for the chunk that
  // was entered:
  bool by_row;
  const T* since = nullptr;  // [C]  from the given state to row a
  const T* until = nullptr;  // [C]  from row b to the last row
  T whole = 0;               // from the given state to the last row

  Fade(const Decay<T>& decay, Work<T>& w, int64_t chunk_ = kChunk)
      : chunk(chunk_),
        by(decay.by),
        by_row(by == By::head || decay.log_gate.data),
        decay_(decay),
        up_(w.power),
        gates_(w.gates),
        stride_(pair_stride<T>()) {
    span = by == By::channel ? w.d_padded : by == By::column ? w.panels * w.width : 1;
    if (by == By::none) return;
    std::fill(w.power, w.power + (chunk + 1) * span, T{0});
    for (int64_t x = 0; x < decay.log_factor.cols; ++x) {
      const double g = std::exp(static_cast<double>(decay.log_factor(0, x)));
      double power = 1.0;
      for (int64_t n = 0; n <= chunk; ++n, power *= g)
        w.power[n * span + x] = static_cast<T>(power);
    }
    if (by != By::head) return;
    down_ = w.power + chunk + 1;  // g^(chunk - 1 - n), then zeros
    for (int64_t n = 0; n < chunk; ++n) down_[n] = up_[chunk - 1 - n];
    std::fill(down_ + chunk, down_ + 2 * chunk, T{0});
  }

  /// g^n of the decay.
  const T* power(int64_t n) const { return up_ + n * span; }

  /// [C] of `by_row`: from rows b <= a to row a, then zeros.
  const T* within(int64_t a) const {
    return decay_.log_gate.data ? gates_ + (a + 1) * stride_ : down_ + chunk - 1 - a;
  }

  /// Makes the members above ready for rows [begin, begin + rows). `lead`: how many
  /// steps the state fades before the first of them reads it, 0 or 1.
  HWY_INLINE void enter(int64_t begin, int64_t rows, int64_t lead) {
    if (!by_row) return;
    if (decay_.log_gate.data) return enter_gates(begin, rows, lead);
    since = power(lead);
    until = down_ + chunk - rows;
    whole = *power(rows - 1 + lead);
  }

 private:
  /// With f_a the factor before row a: row a of the pairs is row a-1 times f_a, and 1
  /// for itself. Products of factors need no difference of sums of logarithms, so a
  /// factor of 0 is nothing special.
  HWY_NOINLINE void enter_gates(int64_t begin, int64_t rows, int64_t lead) {
    const int64_t first = decay_.before_first ? begin : begin - 1;
    const double every =
        by == By::head ? static_cast<double>(decay_.log_factor(0, 0)) : 0.0;
    double pairs[kChunk] = {}, past = 1.0;
    for (int64_t a = 0; a < rows; ++a) {
      double f = 1.0;
      if (a > 0 || lead > 0)
        f = std::exp(every + static_cast<double>(decay_.log_gate(first + a, 0)));
      past *= f;
      next_pairs(a, f, pairs, gates_ + (a + 1) * stride_);
      gates_[a] = static_cast<T>(past);
    }
    since = gates_;
    until = within(rows - 1);
    whole = since[rows - 1];
  }

  /// pairs *= f, the pair of row a with itself = 1; and the same in `row`, rounded.
  HWY_INLINE void next_pairs(int64_t a, double f, double* pairs, T* row) const {
    const hn::ScalableTag<double> wide;
    const hn::Rebind<T, decltype(wide)> narrow;
    const auto lanes = static_cast<int64_t>(hn::Lanes(wide));
    const auto factor = hn::Set(wide, f), one = hn::Set(wide, 1.0);
    for (int64_t b = 0; b < chunk; b += lanes) {
      auto x = hn::Mul(hn::LoadU(wide, pairs + b), factor);
      const auto itself = hn::Eq(hn::Iota(wide, static_cast<double>(b)),
                                 hn::Set(wide, static_cast<double>(a)));
      x = hn::IfThenElse(itself, one, x);
      hn::StoreU(x, wide, pairs + b);
      if constexpr (sizeof(T) == 8)
        hn::StoreU(x, wide, row + b);
      else
        hn::StoreU(hn::DemoteTo(narrow, x), narrow, row + b);
    }
  }

  const Decay<T> decay_;
  const T* up_;        // [chunk + 1, span]
  T* down_ = nullptr;  // [2 chunk] of By::head
  T* gates_;           // [chunk + 1, stride]: since, then the pairs of each row
  int64_t stride_;
};

template <class T>
HWY_INLINE T with_eps(const Denominator<T>& denominator, T raw) {
  return denominator.clamp ? std::max(raw, denominator.eps) : raw + denominator.eps;
}

/// 1 / den, or 0 where nothing can be attended to.
template <class T>
HWY_INLINE T inverse_or_zero(T den) {
  return den == T{0} ? T{0} : T{1} / den;
}

/// w.k -> panels of its transpose, w.k_t, filled up with zeros.
template <class T>
HWY_INLINE void transpose_keys(int64_t rows, Work<T>& w) {
  const int64_t whole = round_up(rows, w.width);
  std::fill(w.k + rows * w.d_padded, w.k + whole * w.d_padded, T{0});
  transpose_to_panels(w.k, whole, w.d, w.d_padded, w.k_t);
}

/// c[a][b] = x_a . y_b for b <= a, and maybe more: y_t is y in panels of its transpose,
/// [C / W][depth padded][W].
template <class T>
HWY_INLINE void lower_products(Left<T> x, const T* y_t, int64_t depth, int64_t rows,
                               T* c) {
  const int64_t width = panel_width<T>(), stride = pair_stride<T>();
  const int64_t padded = round_up(depth, width);
  for (int64_t first = 0; first < rows; first += width)  // rows above see nothing
    multiply<T>(x.from_row(first), y_t + first * padded, width,
                c + first * stride + first, stride, rows - first, depth, false);
}

/// Zeros above the diagonal, and below it the gates between a pair.
template <class T>
HWY_INLINE void fade_pairs(const Fade<T>& fade, int64_t rows, T* scores) {
  const int64_t width = panel_width<T>(), stride = pair_stride<T>();
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  for (int64_t a = 0; a < rows; ++a) {
    T* const row = scores + a * stride;
    const T* const within = fade.by_row ? fade.within(a) : nullptr;
    for (int64_t b = 0; b < round_up(a + 1, width); b += lanes) {
      auto x = hn::LoadU(tag, row + b);
      if (within && b <= a) x = hn::Mul(x, hn::LoadU(tag, within + b));
      x = hn::IfThenElseZero(first_lanes(tag, a + 1 - b), x);
      hn::StoreU(x, tag, row + b);
    }
  }
}

/// scores[a][b] = sum_d q_ad k_bd g_d^(a-b) times the gates between, for b <= a, and 0
/// for b > a.
template <class T>
HWY_NOINLINE void score_chunk(const Fade<T>& fade, int64_t rows, Work<T>& w) {
  using By = typename Decay<T>::By;
  const int64_t stride = pair_stride<T>();
  if (fade.by == By::channel) {
    for (int64_t a = 0; a < rows; ++a)
      for (int64_t b = 0; b <= a; ++b)
        w.scores[a * stride + b] = dot(w.q + a * w.d_padded, w.k + b * w.d_padded,
                                       fade.power(a - b), w.d_padded);
  } else {
    transpose_keys(rows, w);
    lower_products(w.near, w.k_t, w.d, rows, w.scores);
  }
  fade_pairs(fade, rows, w.scores);
}

/// Before k^T v is added: fades each value from its row to the end of the chunk, and
/// the state by the whole chunk.
template <class T>
HWY_INLINE void fade_panel(const Fade<T>& fade, const T* column, int64_t rows,
                           int64_t lead, int64_t d, int64_t width, T* v, int64_t v_step,
                           T* s) {
  using By = typename Decay<T>::By;
  const int64_t age = rows - 1 + lead;
  for (int64_t b = 0; b < rows; ++b) {
    T* row = v + b * v_step;
    if (fade.by_row) scale_by(row, fade.until[b], width);
    if (fade.by == By::column)
      scale_by(row, column + (rows - 1 - b) * fade.span, width);
  }
  for (int64_t i = 0; i < d; ++i) {
    T* row = s + i * width;
    if (fade.by_row) scale_by(row, fade.whole, width);
    if (fade.by == By::channel) scale_by(row, fade.power(age)[i], width);
    if (fade.by == By::column) scale_by(row, column + age * fade.span, width);
  }
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
