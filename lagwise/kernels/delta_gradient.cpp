#include <algorithm>

#include "lagwise/kernels/delta_rule.h"

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/delta_gradient.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/delta_chunk-inl.h"
#include "lagwise/kernels/simd/dispatch.h"

// The names are those of docs/maths/memory.md, section 3. In one chunk of C rows, from
// the state S before it and the gradient R of the state after it:
//
//     errors = (I + M diag(b))^-1 (V - diag(g) K S)    M: pairs of keys, with gates
//     U = diag(b) errors                               what the rows wrote
//     dU = P^T dO + diag(t) K R                        P: pairs of queries and keys
//     W = (I + diag(b) M)^-T dU

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

/// Rows of a chunk C. Keys of few numbers are nearly parallel, which only short ones bear;
/// with wide ones the states before all chunks are more than a cache holds, and where a
/// panel is as wide, chunks of twice the length leave half as many.
HWY_INLINE int64_t rows_of_chunk(int64_t d) { return d < 64 ? kDeltaChunk : kChunk; }

/// What the pass forwards leaves for the pass backwards, chunk by chunk.
template <class T>
struct Kept {
  int64_t state_size, rows_size, pairs_size;
  T* states;  // [chunks + 1][E / W][D][W]  S before each chunk, and after the last one
  T* errors;  // [chunks][C, E]
  T* pairs;   // [chunks][C, C]  M

  Kept(const Work<T>& w, int64_t n, Scratch<T>& scratch)
      : state_size(w.panels * w.d * w.width),
        rows_size(rows_of_chunk(w.d) * w.panels * w.width),
        pairs_size(rows_of_chunk(w.d) * pair_stride<T>()) {
    const int64_t chunks = (n + rows_of_chunk(w.d) - 1) / rows_of_chunk(w.d);
    states = scratch.take((chunks + 1) * state_size);
    errors = scratch.take(chunks * rows_size);
    pairs = scratch.take(chunks * pairs_size);
  }
};

/// The scratch of a chunk on the way back. Rows of width E are padded to whole panels.
/// What is multiplied with the same matrix lies together, as 2 C rows: twice 16 rows fill
/// the widest panel, once would leave half of it empty.
template <class T>
struct Turned {
  int64_t e;      // padded
  int64_t chunk;  // C
  int64_t both;   // 2 C
  T* d_out;       // [C, E], and behind it
  T* w;           // [C, E]
  T* u;           // [C, E], and as many zeros
  T* d_u;         // [C, E]
  T* t;           // [2 C / W][E][W]  a transpose of d_out and w, or of u
  T* across;      // [D, 2 C]
  T* past;        // [D / W][2 C][W]  dO S^T, then W S^T
  T* next;        // [D / W][2 C][W]  U R^T
  T* inverse;     // [C, C]
  T* d_p;         // [C, C]  gradient of P, then with the gates between
  T* d_m;         // [C, C]  of diag(b) M
  T* turned_m;    // [C, C]  of M with the gates between, plus its transpose
  T* strength;    // [C]
  double shares[kChunk][kChunk];  // what each pair b < a gives to the gates between

  Turned(const Work<T>& work, Scratch<T>& scratch)
      : e(work.panels * work.width), chunk(rows_of_chunk(work.d)), both(2 * chunk) {
    const int64_t columns = both * work.d_padded;
    const int64_t pairs = chunk * pair_stride<T>();
    d_out = scratch.take(both * e), w = d_out ? d_out + chunk * e : nullptr;
    u = scratch.take(both * e), d_u = scratch.take(chunk * e);
    t = scratch.take(both * e), across = scratch.take(columns);
    past = scratch.take(columns), next = scratch.take(columns);
    inverse = scratch.take(pairs), d_p = scratch.take(pairs);
    d_m = scratch.take(pairs), turned_m = scratch.take(pairs);
    strength = scratch.take(chunk);
    if (across) std::fill(across, across + columns, T{0});
    if (u) std::fill(u, u + both * e, T{0});
    if (d_out) std::fill(d_out, d_out + both * e, T{0});
  }
};

/// to = x S^T in panels of D, for the x whose transpose is in c.t: it is the transpose of
/// S x^T, in which S is the left factor as it lies in memory. Rows up to `rows` of x.
template <class T>
HWY_NOINLINE void times_state(const Work<T>& w, const T* s, int64_t rows, Turned<T>& c,
                              T* to) {
  const int64_t width = w.width, whole = round_up(rows, width);
  for (int64_t first = 0; first < whole; first += width)
    for (int64_t p = 0; p < w.panels; ++p)
      multiply<T>({s + p * w.d * width, width, 1},
                  c.t + first * c.e + p * width * width, width, c.across + first,
                  c.both, w.d, std::min(width, w.e - p * width), p > 0);
  transpose_to_panels(c.across, w.d_padded, whole, c.both, to);
}

/// Row a of something in panels of D, times x [D].
template <class T>
HWY_INLINE double row_dot(const Work<T>& w, const Turned<T>& c, const T* panels,
                          int64_t a, const T* x) {
  double sum = 0;
  for (int64_t j = 0; j < w.d_padded; j += w.width)
    sum += static_cast<double>(dot(panels + j * c.both + a * w.width, x + j, w.width));
  return sum;
}

/// <S, R>, both in panels: sums of a few hundred terms, and those in f64.
template <class T>
HWY_INLINE double state_dot(const T* s, const T* r, int64_t size) {
  constexpr int64_t kFew = 256;
  double sum = 0;
  for (int64_t i = 0; i < size; i += kFew)
    sum += static_cast<double>(dot(s + i, r + i, std::min(kFew, size - i)));
  return sum;
}

/// Forwards over all chunks.
template <class T>
void keep_chunks(const DeltaInputs<T>& in, Fade<T>& fade, Work<T>& w, Turned<T>& c,
                 const Kept<T>& kept) {
  const int64_t n = in.q.x.rows, width = w.width;
  if (in.s.data)
    load_state<T>(in.s, w, kept.states);
  else
    std::fill(kept.states, kept.states + kept.state_size, T{0});
  for (int64_t begin = 0, i = 0; begin < n; begin += c.chunk, ++i) {
    const int64_t rows = std::min(c.chunk, n - begin);
    T* const errors = kept.errors + i * kept.rows_size;
    T* const pairs = kept.pairs + i * kept.pairs_size;
    fade.enter(begin, rows, 1);
    load_rows(in.k, begin, rows, w.dense(w.k));
    load_rows(in.v, begin, rows, Block<T>{c.d_out, c.e, width});
    for (int64_t a = 0; a < rows; ++a) c.strength[a] = in.write_strength(begin + a, 0);
    transpose_keys(rows, w);
    pair_keys(fade, rows, w, pairs);
    invert_lower<T>(pairs, nullptr, c.strength, rows, c.inverse);
    for (int64_t p = 0; p < w.panels; ++p) {
      const T* const s = kept.states + i * kept.state_size + p * w.d * width;
      T* const next = kept.states + (i + 1) * kept.state_size + p * w.d * width;
      unrecalled(fade, rows, s, c.d_out + p * width, c.e, w, w.v, width);
      multiply_lower(c.inverse, w.v, width, rows, errors + p * width, c.e, w.ahead);
      for (int64_t a = 0; a < rows; ++a) {
        std::copy_n(errors + a * c.e + p * width, width, w.v + a * width);
        scale_by(w.v + a * width, c.strength[a] * fade.until[a], width);
      }
      std::copy_n(s, w.d * width, next);
      scale_by(next, fade.whole, w.d * width);
      multiply<T>({w.k, 1, w.d_padded}, w.v, width, next, width, w.d, rows, true);
    }
  }
}

/// dU and W, and the gradient of the writing strengths: db_a = W_a . error_a.
template <class T>
HWY_NOINLINE void through_writing(const Fade<T>& fade, int64_t begin, int64_t rows,
                                  const T* errors, const T* pairs, const T* r,
                                  const DeltaGradients<T>& to, Work<T>& w,
                                  Turned<T>& c) {
  const int64_t width = w.width, stride = pair_stride<T>();
  invert_lower<T>(pairs, c.strength, nullptr, rows, c.inverse);
  for (int64_t p = 0; p < w.panels; ++p) {
    T* const d_u = c.d_u + p * width;
    multiply<T>({w.k, w.d_padded, 1}, r + p * w.d * width, width, d_u, c.e, rows, w.d,
                false);
    for (int64_t a = 0; a < rows; ++a) scale_by(d_u + a * c.e, fade.until[a], width);
    multiply<T>({w.scores, 1, stride}, c.d_out + p * width, c.e, d_u, c.e, rows, rows,
                true);
    multiply<T>({c.inverse, 1, stride}, d_u, c.e, c.w + p * width, c.e, rows, rows,
                false);
  }
  for (int64_t a = 0; a < rows; ++a)
    to.write_strength(begin + a, 0) = dot(c.w + a * c.e, errors + a * c.e, c.e);
}

/// The gradients of both kinds of pairs, and what each gives to the gates between.
template <class T>
HWY_NOINLINE void through_pairs(const Fade<T>& fade, int64_t rows, const T* pairs,
                                Work<T>& w, Turned<T>& c) {
  const int64_t stride = pair_stride<T>();
  lower_products<T>({c.d_out, c.e, 1}, c.t, w.e, rows, c.d_p);
  lower_products<T>({c.w, c.e, 1}, c.t, w.e, rows, c.d_m);
  for (int64_t a = 0; a < rows; ++a) {
    T* const d_p = c.d_p + a * stride;
    const T* const gates = fade.within(a);
    for (int64_t b = 0; b < a; ++b) {
      const T d_m = -c.strength[a] * c.d_m[a * stride + b];
      c.shares[a][b] = static_cast<double>(d_p[b] * w.scores[a * stride + b] +
                                           d_m * pairs[a * stride + b]);
      d_p[b] *= gates[b];
      c.turned_m[a * stride + b] = c.turned_m[b * stride + a] = gates[b] * d_m;
    }
    c.turned_m[a * stride + a] = T{0};
  }
  clear_above(rows, c.d_p);
}

/// The gradient of the gate of row t: the shares of all that it stands between.
///
///     pairs b < t <= a, rows a >= t with the state before, rows b < t with the state
///     after, and these two states
///
/// No share is taken away again, so nothing cancels, and a gate of 0 gets exactly 0.
template <class T>
HWY_NOINLINE void through_gates(const Fade<T>& fade, int64_t begin, int64_t rows,
                                double states, const Work<T>& w,
                                const DeltaGradients<T>& to, Turned<T>& c) {
  double reading = 0, pairs[kChunk] = {}, writing[kChunk];
  for (int64_t b = 0; b < rows; ++b)
    writing[b] = static_cast<double>(fade.until[b]) *
                 row_dot(w, c, c.next, b, w.k + b * w.d_padded);
  for (int64_t a = rows; a-- > 0;) {
    const double strength = static_cast<double>(c.strength[a]);
    reading += static_cast<double>(fade.since[a]) *
               (row_dot(w, c, c.past, a, w.q + a * w.d_padded) -
                strength * row_dot(w, c, c.past, c.chunk + a, w.k + a * w.d_padded));
    double sum = reading + states;
    for (int64_t b = 0; b < a; ++b) {
      pairs[b] += c.shares[a][b];
      sum += pairs[b] + writing[b];
    }
    to.log_gate(begin + a, 0) = static_cast<T>(sum);
  }
}

/// dQ = diag(g) dO S^T + d_p K, dV = diag(b) W,
/// dK = d_p^T Q + turned_m K - diag(b g) W S^T + diag(t) U R^T.
template <class T>
HWY_NOINLINE void store_rows(const Fade<T>& fade, int64_t begin, int64_t rows,
                             const DeltaGradients<T>& to, Work<T>& w, Turned<T>& c) {
  const int64_t width = w.width, stride = pair_stride<T>();
  for (int64_t first = 0; first < w.d; first += width) {
    const T* const k = w.k + first;
    const T* const past = c.past + first * c.both;
    const T* const next = c.next + first * c.both;
    read_into<T>({{k, 0, 0},
                  nullptr,
                  0,
                  {c.d_p, stride, 1},
                  k,
                  w.d_padded,
                  fade.since,
                  nullptr,
                  past},
                 to.q, begin, rows, first, w, w.ahead);
    for (int64_t a = 0; a < rows; ++a) {
      T* const row = w.o + a * width;
      std::copy_n(next + a * width, width, row);
      scale_by(row, fade.until[a], width);
      add_scaled<T>(row, -c.strength[a] * fade.since[a], past + (c.chunk + a) * width,
                    nullptr, width);
    }
    multiply<T>({c.d_p, 1, stride}, w.q + first, w.d_padded, w.o, width, rows, rows,
                true);
    multiply<T>({c.turned_m, stride, 1}, k, w.d_padded, w.o, width, rows, rows, true);
    store_panel(to.k, begin, rows, first, w.factor, w.o);
  }
  for (int64_t first = 0; first < w.e; first += width) {
    for (int64_t a = 0; a < rows; ++a)
      std::copy_n(c.w + a * c.e + first, width, w.o + a * width);
    store_panel(to.v, begin, rows, first, c.strength, w.o);
  }
}

/// R = whole R + Q^T diag(g) dO - K^T diag(b g) W: from after the chunk to before it. One
/// product, with the keys laid behind the queries.
template <class T>
HWY_NOINLINE void turn_state(const Fade<T>& fade, int64_t rows, T* r, Work<T>& w,
                             Turned<T>& c) {
  const int64_t width = w.width;
  std::copy_n(w.k, rows * w.d_padded, w.q + rows * w.d_padded);
  scale_by(r, fade.whole, w.panels * w.d * width);
  for (int64_t p = 0; p < w.panels; ++p) {
    T* const behind = w.v + rows * width;
    for (int64_t a = 0; a < rows; ++a) {
      std::copy_n(c.d_out + a * c.e + p * width, width, w.v + a * width);
      scale_by(w.v + a * width, fade.since[a], width);
      std::copy_n(c.w + a * c.e + p * width, width, behind + a * width);
      scale_by(behind + a * width, -c.strength[a] * fade.since[a], width);
    }
    multiply<T>({w.q, 1, w.d_padded}, w.v, width, r + p * w.d * width, width, w.d,
                2 * rows, true);
  }
}

template <class T>
void delta_gradient_of(const DeltaInputs<T>& in, const Rows<T>& d_out,
                       const DeltaGradients<T>& to, T* scratch) noexcept {
  const int64_t n = in.q.x.rows;
  Scratch<T> pieces(scratch);
  Work<T> w(in.q.width(), in.v.x.cols, pieces);
  Turned<T> c(w, pieces);
  const Kept<T> kept(w, n, pieces);
  Decay<T> decay = in.decay;
  const T no_decay = 0;  // so that every row has its factors, if all of them 1
  if (decay.by == Decay<T>::By::none)
    decay.by = Decay<T>::By::head, decay.log_factor = {&no_decay, 1, 1};
  Fade<T> fade(decay, w, c.chunk);
  std::fill(w.factor, w.factor + c.chunk, T{1});
  keep_chunks(in, fade, w, c, kept);
  load_state<T>(to.s, w, w.s);  // R
  for (int64_t i = (n + c.chunk - 1) / c.chunk - 1; i >= 0; --i) {
    const int64_t begin = i * c.chunk, rows = std::min(c.chunk, n - begin);
    const T* const errors = kept.errors + i * kept.rows_size;
    const T* const pairs = kept.pairs + i * kept.pairs_size;
    const T* const s = kept.states + i * kept.state_size;
    fade.enter(begin, rows, 1);
    load_rows(in.q, begin, rows, w.dense(w.q));
    load_rows(in.k, begin, rows, w.dense(w.k));
    load_rows(d_out, begin, rows, Block<T>{c.d_out, c.e, w.width});
    for (int64_t a = 0; a < rows; ++a) c.strength[a] = in.write_strength(begin + a, 0);
    w.near = {w.q, w.d_padded, 1};
    score_chunk(fade, rows, w);
    clear_above(rows, w.scores);
    through_writing(fade, begin, rows, errors, pairs, w.s, to, w, c);
    for (int64_t a = 0; a < rows; ++a) {
      std::copy_n(errors + a * c.e, c.e, c.u + a * c.e);
      scale_by(c.u + a * c.e, c.strength[a], c.e);
    }
    transpose_to_panels(c.u, round_up(rows, w.width), w.e, c.e, c.t);
    through_pairs(fade, rows, pairs, w, c);
    times_state(w, w.s, rows, c, c.next);
    transpose_to_panels(c.d_out, c.both, w.e, c.e, c.t);
    times_state(w, s, c.both, c, c.past);
    if (to.log_gate.data)
      through_gates(
          fade, begin, rows,
          static_cast<double>(fade.whole) * state_dot(s, w.s, kept.state_size), w, to,
          c);
    store_rows(fade, begin, rows, to, w, c);
    turn_state(fade, rows, w.s, w, c);
  }
  store_state<T>(w, w.s, to.s);
}

template <class T>
int64_t gradient_scratch_of(int64_t n, int64_t d, int64_t e) {
  Scratch<T> pieces(nullptr);
  const Work<T> w(d, e, pieces);
  const Turned<T> c(w, pieces);
  const Kept<T> kept(w, n, pieces);
  return pieces.used();
}

template <class T>
constexpr Kernels<delta_gradient<T>, delta_gradient_scratch<T>> kKernels = {
    {delta_gradient_of<T>}, {gradient_scratch_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
void delta_gradient(const DeltaInputs<T>& in, const Rows<T>& d_out,
                    const DeltaGradients<T>& to, T* scratch) noexcept {
  chosen<T, delta_gradient<T>>(in, d_out, to, scratch);
}
template <class T>
int64_t delta_gradient_scratch(int64_t n, int64_t d, int64_t e) {
  return chosen<T, delta_gradient_scratch<T>>(n, d, e);
}

LAGWISE_INSTANTIATE(delta_gradient)
LAGWISE_INSTANTIATE(delta_gradient_scratch)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
