#include "lagwise/kernels/decay_gradient.h"

#include <algorithm>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/decay_gradient.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/chunk-inl.h"
#include "lagwise/kernels/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

/// x[0, width) = f (x + n y), f per column.
template <class T>
HWY_INLINE void fade_slope(T* HWY_RESTRICT x, const T* y, int64_t n, const T* f,
                           int64_t width) {
  add_scaled<T>(x, static_cast<T>(n), y, nullptr, width);
  scale_by(x, f, width);
}

/// One panel: o_a = g^n (q_a S' + n q_a S) + sum_{b < a} (a-b) g^(a-b) A_ab v_b with
/// n = a + 1, then both states move on by the chunk.
template <class T>
HWY_NOINLINE void advance_slope(const Fade<T>& fade, int64_t panel, int64_t rows,
                                T* slopes, T* o_slope, Work<T>& w) {
  const int64_t stride = pair_stride<T>(), width = w.width;
  T* s = w.s + panel * w.d * width;
  T* s_slope = slopes + panel * w.d * width;
  T* v = w.v + panel * fade.chunk * width;
  const auto power = [&](int64_t n) { return fade.power(n) + panel * width; };

  multiply<T>({w.q, w.d_padded, 1}, s_slope, width, o_slope, width, rows, w.d, false);
  multiply<T>({w.q, w.d_padded, 1}, s, width, w.o, width, rows, w.d, false);
  for (int64_t a = 0; a < rows; ++a) {
    T* const o = o_slope + a * width;
    fade_slope(o, w.o + a * width, a + 1, power(a + 1), width);
    if (fade.by_row) scale_by(o, fade.since[a], width);
    for (int64_t b = 0; b < a; ++b)
      add_scaled(o, static_cast<T>(a - b) * w.scores[a * stride + b], v + b * width,
                 power(a - b), width);
  }

  for (int64_t d = 0; d < w.d; ++d) {
    fade_slope(s_slope + d * width, s + d * width, rows, power(rows), width);
    scale_by(s + d * width, power(rows), width);
    if (!fade.by_row) continue;
    scale_by(s_slope + d * width, fade.whole, width);
    scale_by(s + d * width, fade.whole, width);
  }
  for (int64_t b = 0; b < rows; ++b) {
    scale_by(v + b * width, power(rows - 1 - b), width);
    if (fade.by_row) scale_by(v + b * width, fade.until[b], width);
  }
  multiply<T>({w.k, 1, w.d_padded}, v, width, s, width, w.d, rows, true);
  for (int64_t b = 0; b < rows; ++b)
    scale_by(v + b * width, static_cast<T>(rows - 1 - b), width);
  multiply<T>({w.k, 1, w.d_padded}, v, width, s_slope, width, w.d, rows, true);
}

template <class T>
void gradient_of(const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                 const Decay<T>& decay, MatView<T> s, MatView<T> s_slope,
                 MatView<const T> at, FeatureMap map, double* moment,
                 T* scratch) noexcept {
  Scratch<T> pieces(scratch);
  Work<T> w(q.width(), v.x.cols, pieces);
  Fade<T> fade(decay, w);
  T* const slopes = pieces.take(w.panels * w.d * w.width);
  T* const o_slope = pieces.take(kChunk * w.width);
  load_state<T>(s, w, w.s);
  load_state<T>(s_slope, w, slopes);
  std::fill(w.factor, w.factor + fade.chunk, T{1});
  const Sink<T> sink{{}, at, map, moment};
  for (int64_t begin = 0; begin < q.x.rows; begin += fade.chunk) {
    const int64_t rows = std::min(fade.chunk, q.x.rows - begin);
    fade.enter(begin, rows, 1);
    load_rows(q, begin, rows, w.dense(w.q));
    load_rows(k, begin, rows, w.dense(w.k));
    load_rows(v, begin, rows, w.panels_of(fade.chunk));
    score_chunk(fade, rows, w);
    for (int64_t p = 0; p < w.panels; ++p) {
      advance_slope(fade, p, rows, slopes, o_slope, w);
      store_panel(sink, begin, rows, p * w.width, w.factor, o_slope);
    }
  }
  store_state<T>(w, w.s, s);
  store_state<T>(w, slopes, s_slope);
}

template <class T>
int64_t scratch_of(int64_t d, int64_t e) {
  Scratch<T> pieces(nullptr);
  const Work<T> w(d, e, pieces);
  pieces.take(w.panels * d * w.width);
  pieces.take(kChunk * w.width);
  return pieces.used();
}

template <class T>
constexpr Kernels<decay_gradient<T>, decay_gradient_scratch<T>> kKernels = {
    {gradient_of<T>}, {scratch_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void decay_gradient(const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                    const Decay<T>& decay, MatView<T> s, MatView<T> s_slope,
                    MatView<const T> at, FeatureMap map, double* moment,
                    T* scratch) noexcept {
  chosen<T, decay_gradient<T>>(q, k, v, decay, s, s_slope, at, map, moment, scratch);
}
template <class T>
int64_t decay_gradient_scratch(int64_t d, int64_t e) {
  return chosen<T, decay_gradient_scratch<T>>(d, e);
}

LAGWISE_INSTANTIATE(decay_gradient)
LAGWISE_INSTANTIATE(decay_gradient_scratch)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
