#pragma once

#include <cstdint>

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// A bfloat16 as it lies in memory: the upper half of a float.
struct Bfloat16 {
  uint16_t bits;
};

/// One query of one head against the keys and values kept of the past. T is float or
/// double, S how they are stored: T, or Bfloat16 with T = float. Rows of k, v and the
/// tables are dense (column step 1); row j of a table serves key j.
template <class T, class S>
struct StepHead {
  const T* q;          ///< [D]
  MatView<const S> k;  ///< [M, D]
  MatView<const S> v;  ///< [M, E]
  T scale = 1;
  MatView<const T> lag_bias = {};    ///< [M, 1]
  MatView<const T> lag_keys = {};    ///< [M, D]
  MatView<const T> lag_values = {};  ///< [M, E]
  MatView<const T> key_bias = {};    ///< [M, 1]
};

/// One decoding step of exact attention over keys [begin, end):
///
///     s_j = scale q . (k_j + lag_keys_j) + lag_bias_j + key_bias_j
///     partial = [sum_j w_j (v_j + lag_values_j) | top | sum_j w_j]
///     w_j = exp(s_j - top)
///
/// with top the largest s_j; -inf and zeros where there is none. Where all scores are
/// -inf, but not because of the bias, the last is NaN (0 / 0). Several ranges of keys
/// are brought together by exact_step_join.
///
/// Shapes    partial [E + 2].
/// Requires  scratch of kStepKeys numbers.
/// Cost      reads each key and value once: as fast as memory.
/// Threads   none; any split of the keys, joined in order, gives the attention.
template <class T, class S>
void exact_step(const StepHead<T, S>& head, int64_t begin, int64_t end, T* partial,
                T* scratch) noexcept;

/// out = the sum of `count` partials divided by the sum of their weights; zeros where
/// nothing was seen. partials [count, E + 2].
template <class T>
void exact_step_join(const T* partials, int64_t count, int64_t e, T* out) noexcept;

/// Keys whose scores are formed before the largest score so far is updated.
inline constexpr int64_t kStepKeys = 256;

}  // namespace lagwise::kernels
