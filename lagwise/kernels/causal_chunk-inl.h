// One chunk of a causal pass: its rows loaded, and one panel of columns read from the
// state and the chunk, after which the state moves on.

#if defined(LAGWISE_KERNELS_CAUSAL_CHUNK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LAGWISE_KERNELS_CAUSAL_CHUNK_INL_H_
#undef LAGWISE_KERNELS_CAUSAL_CHUNK_INL_H_
#else
#define LAGWISE_KERNELS_CAUSAL_CHUNK_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "lagwise/kernels/chunk-inl.h"
#include "lagwise/kernels/simd/rows-inl.h"
#include "lagwise/kernels/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {

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
  const int64_t stride = pair_stride<T>(), width = w.width;
  multiply<T>(w.far, s, width, w.o, width, rows, w.d, false, w.ahead);
  for (int64_t a = 0; a < rows; ++a) {
    scale_by(w.o + a * width, column + (a + lead) * fade.span, width);
    if (fade.by_row) scale_by(w.o + a * width, fade.since[a], width);
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
  const int64_t stride = pair_stride<T>(), width = w.width;
  T* s = w.s + panel * w.d * width;
  T* own_v = w.v + panel * fade.chunk * width;
  const T* v = w.values.to + panel * w.values.panel_step;
  const T* column = fade.power(0) + panel * width;  // of By::column
  const bool straight = fade.by != By::column && takes_whole(sink, panel * width);
  if (fade.by == By::column) {
    read_fading_columns(fade, column, v, rows, lead, s, w);
  } else {
    const T* const ages = fade.by_row ? fade.since : nullptr;
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

  if (fade.by_row || fade.by != By::none)
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
  const bool changed = fade.by_row || fade.by == By::column;
  if (!changed && lie_ready(v)) {
    w.values = {v.x.row(begin), v.x.row_step, w.width};
  } else {
    const Block<T> block = w.panels_of(fade.chunk);
    load_rows(v, begin, rows, block);
    w.values = {block.to, block.row_step, block.panel_step};
  }
}

/// One panel of a result, written where it belongs.
template <class T>
HWY_INLINE void read_into(const CausalRead<T>& read, const Sink<T>& sink, int64_t begin,
                          int64_t count, int64_t first, Work<T>& w, Ahead<T>& ahead) {
  if (takes_whole(sink, first))
    return read_causal(read, count, sink.out.row(begin) + first, sink.out.row_step,
                       ahead);
  read_causal(read, count, w.o, w.width, ahead);
  store_panel(sink, begin, count, first, w.factor, w.o);
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
