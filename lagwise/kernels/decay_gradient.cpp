#include "lagwise/kernels/decay_gradient.h"

#include <algorithm>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/decay_gradient.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/chunk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

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
  const int64_t stride = round_up(fade.chunk, w.width), width = w.width;
  T* s = w.s + panel * w.d * width;
  T* s_slope = slopes + panel * w.d * width;
  T* v = w.v + panel * fade.chunk * width;
  const auto power = [&](int64_t n) { return fade.power(n) + panel * width; };

  multiply<T>({w.q, w.d_padded, 1}, s_slope, width, o_slope, width, rows, w.d, false);
  multiply<T>({w.q, w.d_padded, 1}, s, width, w.o, width, rows, w.d, false);
  for (int64_t a = 0; a < rows; ++a) {
    T* const o = o_slope + a * width;
    fade_slope(o, w.o + a * width, a + 1, power(a + 1), width);
    for (int64_t b = 0; b < a; ++b)
      add_scaled(o, static_cast<T>(a - b) * w.scores[a * stride + b], v + b * width,
                 power(a - b), width);
  }

  for (int64_t d = 0; d < w.d; ++d) {
    fade_slope(s_slope + d * width, s + d * width, rows, power(rows), width);
    scale_by(s + d * width, power(rows), width);
  }
  for (int64_t b = 0; b < rows; ++b)
    scale_by(v + b * width, power(rows - 1 - b), width);
  multiply<T>({w.k, 1, w.d_padded}, v, width, s, width, w.d, rows, true);
  for (int64_t b = 0; b < rows; ++b)
    scale_by(v + b * width, static_cast<T>(rows - 1 - b), width);
  multiply<T>({w.k, 1, w.d_padded}, v, width, s_slope, width, w.d, rows, true);
}

template <class T>
void gradient_of(const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                 MatView<const T> log_factor, MatView<T> s, MatView<T> s_slope,
                 MatView<const T> at, FeatureMap map, double* moment, T* scratch) {
  Work<T> w(q.width(), v.x.cols, scratch);
  const Fade<T> fade({Decay<T>::By::column, log_factor}, w);
  T* const slopes = w.end;
  T* const o_slope = slopes + w.panels * w.d * w.width;
  load_state<T>(s, w, w.s);
  load_state<T>(s_slope, w, slopes);
  std::fill(w.factor, w.factor + fade.chunk, T{1});
  const Sink<T> sink{{}, at, map, moment};
  for (int64_t begin = 0; begin < q.x.rows; begin += fade.chunk) {
    const int64_t rows = std::min(fade.chunk, q.x.rows - begin);
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
  T* const nowhere = nullptr;
  const Work<T> w(d, e, nowhere);
  return (w.end - nowhere) + w.panels * d * w.width + kChunk * w.width;
}

}  // namespace

void decay_gradient_f32(const Rows<float>& q, const Rows<float>& k,
                        const Rows<float>& v, MatView<const float> log_factor,
                        MatView<float> s, MatView<float> s_slope,
                        MatView<const float> at, FeatureMap map, double* moment,
                        float* scratch) {
  gradient_of(q, k, v, log_factor, s, s_slope, at, map, moment, scratch);
}
void decay_gradient_f64(const Rows<double>& q, const Rows<double>& k,
                        const Rows<double>& v, MatView<const double> log_factor,
                        MatView<double> s, MatView<double> s_slope,
                        MatView<const double> at, FeatureMap map, double* moment,
                        double* scratch) {
  gradient_of(q, k, v, log_factor, s, s_slope, at, map, moment, scratch);
}
int64_t decay_scratch_f32(int64_t d, int64_t e) { return scratch_of<float>(d, e); }
int64_t decay_scratch_f64(int64_t d, int64_t e) { return scratch_of<double>(d, e); }

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

HWY_EXPORT(decay_gradient_f32);
HWY_EXPORT(decay_gradient_f64);
HWY_EXPORT(decay_scratch_f32);
HWY_EXPORT(decay_scratch_f64);

template <>
void decay_gradient<float>(const Rows<float>& q, const Rows<float>& k,
                           const Rows<float>& v, MatView<const float> log_factor,
                           MatView<float> s, MatView<float> s_slope,
                           MatView<const float> at, FeatureMap map, double* moment,
                           float* scratch) noexcept {
  HWY_DYNAMIC_DISPATCH(decay_gradient_f32)
  (q, k, v, log_factor, s, s_slope, at, map, moment, scratch);
}
template <>
void decay_gradient<double>(const Rows<double>& q, const Rows<double>& k,
                            const Rows<double>& v, MatView<const double> log_factor,
                            MatView<double> s, MatView<double> s_slope,
                            MatView<const double> at, FeatureMap map, double* moment,
                            double* scratch) noexcept {
  HWY_DYNAMIC_DISPATCH(decay_gradient_f64)
  (q, k, v, log_factor, s, s_slope, at, map, moment, scratch);
}
template <>
int64_t decay_gradient_scratch<float>(int64_t d, int64_t e) {
  return HWY_DYNAMIC_DISPATCH(decay_scratch_f32)(d, e);
}
template <>
int64_t decay_gradient_scratch<double>(int64_t d, int64_t e) {
  return HWY_DYNAMIC_DISPATCH(decay_scratch_f64)(d, e);
}

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
