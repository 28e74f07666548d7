#pragma once

#include "lagwise/kernels/linear_attention.h"

namespace lagwise::kernels {

/// Causal linear attention of one head that replaces what a key recalls, in chunks.
///
///     S_i = g_i S_{i-1} + k_i u_i^T      u_i = b_i (v_i - g_i S_{i-1}^T k_i)
///     o_i = S_i^T q_i
///
/// Within a chunk every u depends on those before it: a triangular system, whose inverse
/// is formed once for all columns (docs/maths/memory.md). The rest is causal_linear with
/// u in the place of v.
///
/// Shapes    q, k [N, D]; v, out [N, E]; write_strength b [N, 1]; s [D, E].
/// State     s is read and advanced in place: two halves equal the whole.
/// Requires  a decay by none or head, with gates or without; scratch of
///           delta_scratch<T>(D, E) numbers.
/// Cost      6 N D E flops and about 4 N C (D + E) within chunks of C rows.
/// Threads   none. Columns of v, s and out may be split between callers: each column
///           comes out with the same bits however they are split.
/// Paper     Yang et al., "Parallelizing Linear Transformers with the Delta Rule over
///           Sequence Length", NeurIPS 2024. https://arxiv.org/abs/2406.06484
template <class T>
void delta_linear(const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                  MatView<const T> write_strength, const Decay<T>& decay, MatView<T> s,
                  const Sink<T>& sink, T* scratch) noexcept;
template <class T>
int64_t delta_scratch(int64_t d, int64_t e);

/// What goes into delta_linear.
template <class T>
struct DeltaInputs {
  Rows<T> q, k, v;
  MatView<const T> write_strength;
  Decay<T> decay;
  MatView<const T> s;  ///< before row 0; empty: zero
};

/// Where delta_gradient writes. Gates may be empty: not computed.
template <class T>
struct DeltaGradients {
  Sink<T> q, k, v;
  MatView<T> write_strength;  ///< [N, 1]
  MatView<T> log_gate;        ///< [N, 1]
  MatView<T> s;  ///< [D, E]: holds the gradient of the state after the last row
};

/// All gradients of delta_linear, from that of its output: once forwards to have the
/// state before every chunk, then the chunks in reverse.
///
/// Requires  delta_gradient_scratch<T>(N, D, E) numbers of scratch: D E for each chunk.
/// Cost      16 N D E flops and about 12 N C (D + E) within chunks of C rows.
template <class T>
void delta_gradient(const DeltaInputs<T>& in, const Rows<T>& d_out,
                    const DeltaGradients<T>& to, T* scratch) noexcept;
template <class T>
int64_t delta_gradient_scratch(int64_t n, int64_t d, int64_t e);

}  // namespace lagwise::kernels
