#include "lagwise/kernels/linear_attention.h"

#include <algorithm>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/linear_attention.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/causal_chunk-inl.h"
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
  const int64_t stride = pair_stride<T>();
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  for (int64_t a = 0; a < rows; ++a) {
    auto sum = hn::Zero(tag);
    for (int64_t b = 0; b <= a; b += lanes)
      sum = hn::Add(sum, hn::LoadU(tag, w.scores + a * stride + b));
    T past = dot(w.far.data + a * w.far.row, w.z, w.d_padded);
    if (fade.by_row) past *= fade.since[a];
    const T den = with_eps(denominator, hn::GetLane(hn::SumOfLanes(tag, sum)) + past);
    if (denominator.den.data) denominator.den(begin + a, 0) = den;
    w.factor[a] = inverse_or_zero(den);
  }
  if (fade.by_row) scale_by(w.z, fade.whole, w.d_padded);
  if (fade.by == By::channel) scale_by(w.z, fade.power(rows - 1 + lead), w.d_padded);
  for (int64_t b = 0; b < rows; ++b) {
    const T weight = fade.by_row ? fade.until[b] : T{1};
    add_scaled<T>(w.z, weight, w.k + b * w.d_padded, nullptr, w.d_padded);
  }
}

template <class T>
void causal_linear_of(const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                      const Decay<T>& decay, const Denominator<T>& denominator,
                      MatView<T> s, const Sink<T>& sink, T* scratch) noexcept {
  using By = typename Decay<T>::By;
  Scratch<T> pieces(scratch);
  Work<T> w(q.width(), v.x.cols, pieces);
  Fade<T> fade(decay, w);
  load_state<T>(s, w, w.s);
  std::fill(w.z, w.z + w.d_padded, T{0});
  if (denominator.z) std::copy_n(denominator.z, w.d, w.z);

  int64_t lead = decay.before_first ? 1 : 0;
  for (int64_t begin = 0; begin < q.x.rows; begin += fade.chunk, lead = 1) {
    const int64_t rows = std::min(fade.chunk, q.x.rows - begin);
    fade.enter(begin, rows, lead);
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
LAGWISE_CHOOSE_BY_WIDTH

template <class T>
void causal_linear(const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                   const Decay<T>& decay, const Denominator<T>& denominator,
                   MatView<T> s, const Sink<T>& sink, T* scratch) noexcept {
  chosen_by_width<T, causal_linear<T>>(std::max(q.x.cols, v.width()), q, k, v, decay,
                                       denominator, s, sink, scratch);
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
