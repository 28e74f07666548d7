#include "lagwise/kernels/linear_attention.h"

#include <algorithm>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/linear_attention.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/chunk-inl.h"
#include "lagwise/kernels/simd/dispatch.h"
#include "lagwise/kernels/simd/rows-inl.h"
#include "lagwise/kernels/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Computes the factor of each row of a chunk, and z after the chunk. `lead` is how
/// many steps the state fades before the chunk's first row reads it: 0 or 1.
template <class T>
HWY_NOINLINE void row_factors(const Denominator<T>& denominator, const Fade<T>& fade,
                              int64_t begin, int64_t rows, int64_t lead, Work<T>& w) {
  using By = typename Decay<T>::By;
  using From = typename Denominator<T>::From;
  if (denominator.from == From::none) return std::fill(w.factor, w.factor + rows, T{1});
  if (denominator.from == From::given) {
    for (int64_t a = 0; a < rows; ++a)
      w.factor[a] = inverse_or_zero(denominator.den(begin + a, 0));
    return;
  }
  const int64_t stride = round_up(fade.chunk, w.width);
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  for (int64_t a = 0; a < rows; ++a) {
    auto sum = hn::Zero(tag);
    for (int64_t b = 0; b <= a; b += lanes)
      sum = hn::Add(sum, hn::LoadU(tag, w.scores + a * stride + b));
    T past = dot(w.far.data + a * w.far.row, w.z, w.d_padded);
    if (fade.by == By::head) past *= *fade.power(a + lead);
    const T den = with_eps(denominator, hn::GetLane(hn::SumOfLanes(tag, sum)) + past);
    if (denominator.den.data) denominator.den(begin + a, 0) = den;
    w.factor[a] = inverse_or_zero(den);
  }
  const T* past = fade.power(rows - 1 + lead);
  if (fade.by == By::head) scale_by(w.z, *past, w.d_padded);
  if (fade.by == By::channel) scale_by(w.z, past, w.d_padded);
  for (int64_t b = 0; b < rows; ++b) {
    const T weight = fade.by == By::head ? *fade.power(rows - 1 - b) : T{1};
    add_scaled<T>(w.z, weight, w.k + b * w.d_padded, nullptr, w.d_padded);
  }
}

/// Channel decay moves onto the rows themselves: queries reach back to the
/// state, keys forward to the end of the chunk.
template <class T>
HWY_INLINE void fade_channels(const Fade<T>& fade, int64_t rows, int64_t lead,
                              Work<T>& w) {
  for (int64_t a = 0; a < rows; ++a) {
    T* far = w.q_far + a * w.d_padded;
    std::copy_n(w.q + a * w.d_padded, w.d_padded, far);
    scale_by(far, fade.power(a + lead), w.d_padded);
    scale_by(w.k + a * w.d_padded, fade.power(rows - 1 - a), w.d_padded);
  }
}

/// Columns that decay apart, with g per column:
///
///     o = g^(a + lead) q S + sum_b A_ab g^(a - b) v_b
template <class T>
HWY_NOINLINE void read_fading_columns(const Fade<T>& fade, const T* column, const T* v,
                                      int64_t rows, int64_t lead, const T* s,
                                      Work<T>& w) {
  const int64_t stride = round_up(fade.chunk, w.width), width = w.width;
  multiply<T>(w.far, s, width, w.o, width, rows, w.d, false, w.ahead);
  for (int64_t a = 0; a < rows; ++a) {
    scale_by(w.o + a * width, column + (a + lead) * fade.span, width);
    for (int64_t b = 0; b <= a; ++b)
      add_scaled(w.o + a * width, w.scores[a * stride + b], v + b * width,
                 column + (a - b) * fade.span, width);
  }
}

/// One panel of columns: o = q S + scores v, then S = g^rows S + k^T v.
template <class T>
HWY_NOINLINE void advance_panel(const Fade<T>& fade, const Sink<T>& sink, int64_t begin,
                                int64_t panel, int64_t rows, int64_t lead, Work<T>& w) {
  using By = typename Decay<T>::By;
  const int64_t stride = round_up(fade.chunk, w.width), width = w.width;
  T* s = w.s + panel * w.d * width;
  T* own_v = w.v + panel * fade.chunk * width;
  const T* v = w.values.to + panel * w.values.panel_step;
  const T* column = fade.up + panel * width;  // of By::column
  const bool straight = fade.by != By::column && takes_whole(sink, panel * width);
  if (fade.by == By::column) {
    read_fading_columns(fade, column, v, rows, lead, s, w);
  } else {
    const T* const ages = fade.by == By::head ? fade.power(lead) : nullptr;
    const CausalRead<T> read{w.far, s,
                             w.d,   {w.scores, stride, 1},
                             v,     w.values.row_step,
                             ages,  straight ? w.factor : nullptr};
    if (straight)
      read_causal(read, rows, sink.out.row(begin) + panel * width, sink.out.row_step,
                  w.ahead);
    else
      read_causal(read, rows, w.o, width, w.ahead);
  }
  if (!straight) store_panel(sink, begin, rows, panel * width, w.factor, w.o);

  if (fade.by != By::none)
    fade_panel(fade, column, rows, lead, w.d, width, own_v, width, s);
  multiply<T>({w.k, 1, w.d_padded}, v, w.values.row_step, s, width, w.d, rows, true,
              w.ahead);
}

/// Makes the queries and values of a chunk ready: copied into scratch, or read where
/// the caller has them if no map, factor or padding is needed.
template <class T>
HWY_INLINE void load_chunk(const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                           const Fade<T>& fade, int64_t begin, int64_t rows,
                           Work<T>& w) {
  using By = typename Decay<T>::By;
  load_rows(k, begin, rows, w.dense(w.k));
  if (fade.by != By::channel && lie_ready(q)) {
    w.near = {q.x.row(begin), q.x.row_step, 1};
  } else {
    load_rows(q, begin, rows, w.dense(w.q));
    w.near = {w.q, w.d_padded, 1};
  }
  w.far = fade.by == By::channel ? Left<T>{w.q_far, w.d_padded, 1} : w.near;
  const bool changed = fade.by == By::head || fade.by == By::column;
  if (!changed && lie_ready(v)) {
    w.values = {v.x.row(begin), v.x.row_step, w.width};
  } else {
    const Block<T> block = w.panels_of(fade.chunk);
    load_rows(v, begin, rows, block);
    w.values = {block.to, block.row_step, block.panel_step};
  }
}

template <class T>
void causal_linear_of(const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                      const Decay<T>& decay, const Denominator<T>& denominator,
                      MatView<T> s, const Sink<T>& sink, T* scratch) noexcept {
  using By = typename Decay<T>::By;
  Scratch<T> pieces(scratch);
  Work<T> w(q.width(), v.x.cols, pieces);
  const Fade<T> fade(decay, w);
  load_state<T>(s, w, w.s);
  std::fill(w.z, w.z + w.d_padded, T{0});
  if (denominator.z) std::copy_n(denominator.z, w.d, w.z);

  int64_t lead = decay.before_first ? 1 : 0;
  for (int64_t begin = 0; begin < q.x.rows; begin += fade.chunk, lead = 1) {
    const int64_t rows = std::min(fade.chunk, q.x.rows - begin);
    load_chunk(q, k, v, fade, begin, rows, w);
    w.ahead.restart();
    for (const MatView<const T>& x : {q.x, k.x, v.x, MatView<const T>(sink.out)})
      w.ahead.add(x, begin + fade.chunk, begin + 2 * fade.chunk);
    score_chunk(fade, rows, w);
    if (fade.by == By::channel) fade_channels(fade, rows, lead, w);
    row_factors(denominator, fade, begin, rows, lead, w);
    for (int64_t p = 0; p < w.panels; ++p)
      advance_panel(fade, sink, begin, p, rows, lead, w);
  }
  store_state<T>(w, w.s, s);
  if (denominator.z) std::copy_n(w.z, w.d, denominator.z);
}

template <class T>
void absorb_of(const Rows<T>& k, const Rows<T>& v, MatView<T> s, T* z,
               T* scratch) noexcept {
  Scratch<T> pieces(scratch);
  Work<T> w(k.width(), v.x.cols, pieces);
  load_state<T>(s, w, w.s);
  std::fill(w.z, w.z + w.d_padded, T{0});
  if (z) std::copy_n(z, w.d, w.z);
  for (int64_t begin = 0; begin < k.x.rows; begin += kPlainChunk) {
    const int64_t rows = std::min(kPlainChunk, k.x.rows - begin);
    load_rows(k, begin, rows, w.dense(w.k));
    load_rows(v, begin, rows, w.panels_of(kPlainChunk));
    if (z)
      for (int64_t b = 0; b < rows; ++b)
        add_scaled<T>(w.z, T{1}, w.k + b * w.d_padded, nullptr, w.d_padded);
    for (int64_t p = 0; p < w.panels; ++p)
      multiply<T>({w.k, 1, w.d_padded}, w.v + p * kPlainChunk * w.width, w.width,
                  w.s + p * w.d * w.width, w.width, w.d, rows, true);
  }
  store_state<T>(w, w.s, s);
  if (z) std::copy_n(w.z, w.d, z);
}

template <class T>
void read_state_of(const Rows<T>& q, const Denominator<T>& denominator,
                   MatView<const T> s, const Sink<T>& sink, T* scratch) noexcept {
  using From = typename Denominator<T>::From;
  Scratch<T> pieces(scratch);
  Work<T> w(q.width(), s.cols, pieces);
  load_state<T>(s, w, w.s);
  std::fill(w.z, w.z + w.d_padded, T{0});
  if (denominator.z) std::copy_n(denominator.z, w.d, w.z);
  for (int64_t begin = 0; begin < q.x.rows; begin += kPlainChunk) {
    const int64_t rows = std::min(kPlainChunk, q.x.rows - begin);
    load_rows(q, begin, rows, w.dense(w.q));
    for (int64_t a = 0; a < rows; ++a) {
      T den = T{1};
      if (denominator.from == From::given) den = denominator.den(begin + a, 0);
      if (denominator.from == From::features) {
        den = with_eps(denominator, dot(w.q + a * w.d_padded, w.z, w.d_padded));
        if (denominator.den.data) denominator.den(begin + a, 0) = den;
      }
      w.factor[a] = inverse_or_zero(den);
    }
    for (int64_t p = 0; p < w.panels; ++p) {
      multiply<T>({w.q, w.d_padded, 1}, w.s + p * w.d * w.width, w.width, w.o, w.width,
                  rows, w.d, false);
      store_panel(sink, begin, rows, p * w.width, w.factor, w.o);
    }
  }
}

template <class T>
int64_t scratch_of(int64_t d, int64_t e) {
  Scratch<T> pieces(nullptr);
  const Work<T> w(d, e, pieces);
  return pieces.used();
}

template <class T>
constexpr Kernels<causal_linear<T>, absorb<T>, read_state<T>, linear_scratch<T>>
    kKernels = {
        {causal_linear_of<T>}, {absorb_of<T>}, {read_state_of<T>}, {scratch_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void causal_linear(const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                   const Decay<T>& decay, const Denominator<T>& denominator,
                   MatView<T> s, const Sink<T>& sink, T* scratch) noexcept {
  chosen<T, causal_linear<T>>(q, k, v, decay, denominator, s, sink, scratch);
}
template <class T>
void absorb(const Rows<T>& k, const Rows<T>& v, MatView<T> s, T* z,
            T* scratch) noexcept {
  chosen<T, absorb<T>>(k, v, s, z, scratch);
}
template <class T>
void read_state(const Rows<T>& q, const Denominator<T>& denominator, MatView<const T> s,
                const Sink<T>& sink, T* scratch) noexcept {
  chosen<T, read_state<T>>(q, denominator, s, sink, scratch);
}
template <class T>
int64_t linear_scratch(int64_t d, int64_t e) {
  return chosen<T, linear_scratch<T>>(d, e);
}

LAGWISE_INSTANTIATE(causal_linear)
LAGWISE_INSTANTIATE(absorb)
LAGWISE_INSTANTIATE(read_state)
LAGWISE_INSTANTIATE(linear_scratch)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
