#include "lagwise/kernels/delta_rule.h"

#include <algorithm>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/delta_rule.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/delta_chunk-inl.h"
#include "lagwise/kernels/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

/// Scratch beside Work.
template <class T>
struct Solving {
  T* pairs;     // [C, C]
  T* inverse;   // [C, C]  u = inverse x
  T* x;         // [C, W]
  T* strength;  // [C]
  explicit Solving(const Work<T>& w, Scratch<T>& scratch)
      : pairs(scratch.take(kDeltaChunk * pair_stride<T>())),
        inverse(scratch.take(kDeltaChunk * pair_stride<T>())),
        x(scratch.take(kDeltaChunk * w.width)),
        strength(scratch.take(kDeltaChunk)) {}
};

/// (I + diag(b) pairs)^-1 diag(b), by which x becomes what the rows write.
template <class T>
HWY_INLINE void solve_chunk(const Fade<T>& fade, int64_t rows, Work<T>& w,
                            Solving<T>& to) {
  pair_keys(fade, rows, w, to.pairs);
  invert_lower<T>(to.pairs, to.strength, nullptr, rows, to.inverse);
  for (int64_t a = 0; a < rows; ++a)
    for (int64_t b = 0; b <= a; ++b)
      to.inverse[a * pair_stride<T>() + b] *= to.strength[b];
}

template <class T>
void delta_linear_of(const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                     MatView<const T> write_strength, const Decay<T>& decay,
                     MatView<T> s, const Sink<T>& sink, T* scratch) noexcept {
  Scratch<T> pieces(scratch);
  Work<T> w(q.width(), v.x.cols, pieces);
  Solving<T> solving(w, pieces);
  Fade<T> fade(decay, w, kDeltaChunk);
  load_state<T>(s, w, w.s);
  std::fill(w.factor, w.factor + fade.chunk, T{1});
  for (int64_t begin = 0; begin < q.x.rows; begin += fade.chunk) {
    const int64_t rows = std::min(fade.chunk, q.x.rows - begin);
    fade.enter(begin, rows, 1);
    load_chunk(q, k, v, fade, begin, rows, w);
    for (int64_t a = 0; a < rows; ++a)
      solving.strength[a] = write_strength(begin + a, 0);
    w.ahead.restart();
    for (const MatView<const T>& x : {q.x, k.x, v.x, MatView<const T>(sink.out)})
      w.ahead.add(x, begin + fade.chunk, begin + 2 * fade.chunk);
    score_chunk(fade, rows, w);
    solve_chunk(fade, rows, w, solving);
    const Block<const T> values = w.values;
    const Block<T> written = w.panels_of(fade.chunk);
    w.values = {written.to, written.row_step, written.panel_step};
    for (int64_t p = 0; p < w.panels; ++p) {
      unrecalled(fade, rows, w.s + p * w.d * w.width, values.to + p * values.panel_step,
                 values.row_step, w, solving.x, w.width);
      multiply_lower(solving.inverse, solving.x, w.width, rows,
                     written.to + p * written.panel_step, written.row_step, w.ahead);
      advance_panel(fade, sink, begin, p, rows, 1, w);
    }
  }
  store_state<T>(w, w.s, s);
}

template <class T>
int64_t scratch_of(int64_t d, int64_t e) {
  Scratch<T> pieces(nullptr);
  const Work<T> w(d, e, pieces);
  const Solving<T> solving(w, pieces);
  return pieces.used();
}

template <class T>
constexpr Kernels<delta_linear<T>, delta_scratch<T>> kKernels = {{delta_linear_of<T>},
                                                                 {scratch_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void delta_linear(const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                  MatView<const T> write_strength, const Decay<T>& decay, MatView<T> s,
                  const Sink<T>& sink, T* scratch) noexcept {
  chosen<T, delta_linear<T>>(q, k, v, write_strength, decay, s, sink, scratch);
}
template <class T>
int64_t delta_scratch(int64_t d, int64_t e) {
  return chosen<T, delta_scratch<T>>(d, e);
}

LAGWISE_INSTANTIATE(delta_linear)
LAGWISE_INSTANTIATE(delta_scratch)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
