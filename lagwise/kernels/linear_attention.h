#pragma once

#include <cstdint>

#include "lagwise/core/mat_view.h"
#include "lagwise/kernels/rows.h"

namespace lagwise::kernels {

/// How the past fades: S_i = g_i S_{i-1} + k_i v_i^T with
/// g_i = exp(log_factor + log_gate_i).
template <class T>
struct Decay {
  enum class By { none, head, channel, column };
  By by = By::none;                  ///< channel: g per row of S; column: per column
  MatView<const T> log_factor = {};  ///< [1, 1], [1, D] or [1, E]
  bool before_first = true;          ///< the given state fades once before row 0

  /// One number per row, for all channels; empty: 0. [N, 1], or without `before_first`
  /// those of the rows from row 1 on, [N - 1, 1]. -inf: nothing before is read.
  MatView<const T> log_gate = {};
};

/// The number each row is divided by: den_i = q_i . z_i (+ eps, or at least eps).
template <class T>
struct Denominator {
  enum class From { none, features, given };
  From from = From::none;  ///< given: `den` is read instead of written
  T eps = 0;
  bool clamp = false;   ///< max(den, eps) instead of den + eps
  MatView<T> den = {};  ///< [N, 1]: after eps; may be empty for `features`
  T* z = nullptr;       ///< [D] of `features`: read and advanced
};

/// Causal linear attention of one head, in chunks.
///
///     S_i = g S_{i-1} + k_i v_i^T        z_i = g z_{i-1} + k_i
///     o_i = S_i^T q_i / den_i            den_i = q_i . z_i + eps
///
/// Shapes    q, k [N, D]; v, out [N, E]; s [D, E].
/// State     s and z are read and advanced in place: two halves equal the whole.
/// Requires  scratch of linear_scratch<T>(D, E) numbers.
/// Cost      4 N D E flops and about N C (2 D + E) within chunks of C rows.
/// Threads   none. Columns of v, s and out may be split between callers: each
///           column comes out with the same bits however they are split.
/// Numerics  a row with den_i = 0 gives zeros.
/// Paper     Katharopoulos et al., "Transformers are RNNs", ICML 2020.
///           https://arxiv.org/abs/2006.16236
template <class T>
void causal_linear(const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                   const Decay<T>& decay, const Denominator<T>& denominator,
                   MatView<T> s, const Sink<T>& sink, T* scratch) noexcept;

/// Adds keys and values to a state: S += sum_j k_j v_j^T, z += sum_j k_j.
template <class T>
void absorb(const Rows<T>& k, const Rows<T>& v, MatView<T> s, T* z,
            T* scratch) noexcept;

/// Reads a state without changing it: o_i = S^T q_i / den_i.
template <class T>
void read_state(const Rows<T>& q, const Denominator<T>& denominator, MatView<const T> s,
                const Sink<T>& sink, T* scratch) noexcept;

/// Numbers of scratch a pass over rows of width D and E needs, on any target.
template <class T>
int64_t linear_scratch(int64_t d, int64_t e);

}  // namespace lagwise::kernels
