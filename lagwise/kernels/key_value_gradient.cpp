#include "lagwise/kernels/key_value_gradient.h"

#include <algorithm>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/key_value_gradient.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/causal_chunk-inl.h"
#include "lagwise/kernels/simd/dispatch.h"
#include "lagwise/kernels/simd/rows-inl.h"
#include "lagwise/kernels/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

/// The scratch of both results: dv multiplies with the rows of R, dk with its columns.
template <class T>
struct Both {
  Work<T> rows;     // queries k, keys q, values G: gives dv and holds R
  Work<T> columns;  // queries [v | 1], keys [G | c], values q: gives dk
  int64_t chunk;    // C in whole panels
  T* v_t;           // [C / W][E + 1][W]
  T* across;        // [D, C]     R v^T
  T* past;          // [D / W][C][W] its transpose

  Both(int64_t d, int64_t e, int64_t e_all, Scratch<T>& scratch)
      : rows(d, e, scratch),
        columns(e_all, d, scratch),
        chunk(round_up(kChunk, rows.width)),
        v_t(scratch.take(chunk * columns.d_padded)),
        across(scratch.take(chunk * rows.d_padded)),
        past(scratch.take(chunk * rows.d_padded)) {}
};

/// past_a = v_a R^T + r. Computed as the transpose of R v^T, because R can then be the
/// left factor just as it lies in memory; the result is transposed back.
template <class T>
HWY_NOINLINE void read_columns(int64_t count, bool has_r, Both<T>& both) {
  Work<T>& rows = both.rows;
  Work<T>& columns = both.columns;
  const int64_t width = rows.width, whole = round_up(count, width);
  std::fill(columns.q + count * columns.d_padded, columns.q + whole * columns.d_padded,
            T{0});
  transpose_to_panels(columns.q, whole, rows.e, columns.d_padded, both.v_t);
  for (int64_t first = 0; first < whole; first += width)
    for (int64_t p = 0; p < rows.panels; ++p)
      multiply<T>({rows.s + p * rows.d * width, width, 1},
                  both.v_t + first * columns.d_padded + p * width * width, width,
                  both.across + first, both.chunk, rows.d,
                  std::min(width, rows.e - p * width), p > 0, rows.ahead);
  transpose_to_panels(both.across, rows.d_padded, whole, both.chunk, both.past);
  if (!has_r) return;
  for (int64_t p = 0; p < columns.panels; ++p)
    for (int64_t a = 0; a < count; ++a)
      add_scaled<T>(both.past + (p * both.chunk + a) * width, T{1}, rows.z + p * width,
                    nullptr, width);
}

/// r after the chunk.
template <class T>
HWY_INLINE void advance_r(const Fade<T>& fade, const Rows<T>& gradient, int64_t begin,
                          int64_t count, Work<T>& w) {
  if (fade.by_row) scale_by(w.z, fade.whole, w.d_padded);
  for (int64_t b = 0; b < count; ++b) {
    const T age = fade.by_row ? fade.until[b] : T{1};
    add_scaled<T>(w.z, age * gradient.extra(begin + b, 0), w.k + b * w.d_padded,
                  nullptr, w.d_padded);
  }
}

template <class T>
void gradient_of(const Rows<T>& q, const Rows<T>& gradient, const Rows<T>& k,
                 const Rows<T>& v, const Decay<T>& decay, MatView<T> s, T* z,
                 const Sink<T>& to_key, const Sink<T>& to_value, T* scratch) noexcept {
  Scratch<T> pieces(scratch);
  Both<T> both(q.x.cols, v.x.cols, v.width(), pieces);
  Work<T>& w = both.rows;
  Work<T>& c = both.columns;
  Fade<T> fade(decay, w);
  const int64_t width = w.width, stride = pair_stride<T>();
  load_state<T>(s, w, w.s);
  std::fill(w.z, w.z + w.d_padded, T{0});
  const bool has_r = gradient.extra.data;
  if (has_r) std::copy_n(z, w.d, w.z);
  std::fill(w.factor, w.factor + fade.chunk, T{1});
  std::fill(both.across, both.across + both.chunk * w.d_padded, T{0});

  int64_t lead = decay.before_first ? 1 : 0;
  for (int64_t begin = 0; begin < q.x.rows; begin += fade.chunk, lead = 1) {
    const int64_t count = std::min(fade.chunk, q.x.rows - begin);
    fade.enter(begin, count, lead);
    load_rows(q, begin, count, w.dense(w.k));
    load_rows(gradient, begin, count, c.dense(c.k));
    load_rows(v, begin, count, c.dense(c.q));
    if (lie_ready(k)) {
      w.near = {k.x.row(begin), k.x.row_step, 1};
    } else {
      load_rows(k, begin, count, w.dense(w.q));
    }
    w.ahead.restart();
    for (const MatView<const T>& x :
         {q.x, gradient.x, k.x, v.x, MatView<const T>(to_key.out),
          MatView<const T>(to_value.out)})
      w.ahead.add(x, begin + fade.chunk, begin + 2 * fade.chunk);
    score_chunk(fade, count, w);
    score_chunk(fade, count, c);
    const T* const ages = fade.by_row ? fade.since : nullptr;

    read_columns(count, has_r, both);
    for (int64_t p = 0; p < c.panels; ++p)
      read_into<T>({c.near,
                    nullptr,
                    0,
                    {c.scores, stride, 1},
                    w.k + p * width,
                    w.d_padded,
                    ages,
                    nullptr,
                    both.past + p * both.chunk * width},
                   to_key, begin, count, p * width, w, w.ahead);
    if (has_r) advance_r(fade, gradient, begin, count, w);

    for (int64_t p = 0; p < w.panels; ++p) {
      T* const r = w.s + p * w.d * width;
      T* const y = c.k + p * width;
      read_into<T>(
          {w.near, r, w.d, {w.scores, stride, 1}, y, c.d_padded, ages, nullptr},
          to_value, begin, count, p * width, w, w.ahead);
      if (fade.by_row)
        fade_panel<T>(fade, nullptr, count, lead, w.d, width, y, c.d_padded, r);
      multiply<T>({w.k, 1, w.d_padded}, y, c.d_padded, r, width, w.d, count, true,
                  w.ahead);
    }
  }
  store_state<T>(w, w.s, s);
  if (has_r) std::copy_n(w.z, w.d, z);
}

template <class T>
int64_t scratch_of(int64_t d, int64_t e) {
  Scratch<T> pieces(nullptr);
  const Both<T> both(d, e, e + 1, pieces);
  return pieces.used();
}

template <class T>
constexpr Kernels<key_value_gradient<T>, key_value_gradient_scratch<T>> kKernels = {
    {gradient_of<T>}, {scratch_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE
LAGWISE_CHOOSE_BY_WIDTH

template <class T>
void key_value_gradient(const Rows<T>& q, const Rows<T>& gradient, const Rows<T>& k,
                        const Rows<T>& v, const Decay<T>& decay, MatView<T> s, T* z,
                        const Sink<T>& to_key, const Sink<T>& to_value,
                        T* scratch) noexcept {
  chosen_by_width<T, key_value_gradient<T>>(std::max(q.x.cols, v.width()), q, gradient,
                                            k, v, decay, s, z, to_key, to_value,
                                            scratch);
}
template <class T>
int64_t key_value_gradient_scratch(int64_t d, int64_t e) {
  return chosen<T, key_value_gradient_scratch<T>>(d, e);
}

LAGWISE_INSTANTIATE(key_value_gradient)
LAGWISE_INSTANTIATE(key_value_gradient_scratch)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
