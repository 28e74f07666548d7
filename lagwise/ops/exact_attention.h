#pragma once

#include <ATen/core/Tensor.h>

#include "lagwise/ops/torch_names.h"

namespace lagwise::ops {

/// What to compute. Every tensor is optional; undefined means "none".
struct ExactOptions {
  bool causal = false;                 ///< key position <= query position
  Optional<double> scale = {};         ///< 1 / sqrt(D) unless given
  at::Tensor lag_bias = {};            ///< [1|H, N+M-1], added after the scale
  at::Tensor lag_keys = {};            ///< [1|H, N+M-1, D], inside the scale
  at::Tensor lag_values = {};          ///< [1|H, N+M-1, E]
  Optional<int64_t> query_start = {};  ///< key_start + M - N unless given, with
                                       ///<   the N, M of each sequence
  int64_t key_start = 0;               ///< row i stands at query_start + i, key j
                                       ///<   at key_start + j
  Optional<int64_t> window = {};       ///< |lag| < window

  /// Ragged batches: see ops/torch/sequences.h. Each sequence counts its rows from its own
  /// beginning. Unless query_start is given its last query stands at its last key, so a
  /// causal step over caches of different lengths sees each of them to its end.
  at::Tensor lengths = {}, key_lengths = {};        ///< [B]
  at::Tensor cu_seqlens = {}, key_cu_seqlens = {};  ///< [S + 1], B = 1

  /// [B, H, M], added to every score of a key after the scale. A forget gate is
  /// key_bias_j = -(l_1 + ... + l_j) with the gate's logs l: what queries would add is
  /// the same for all their keys, and a softmax does not see it. -inf hides a key.
  at::Tensor key_bias = {};

  at::Tensor starts = {}, key_starts = {};  ///< [B]: the first real row, where padding
};                                          ///<   is on the left

/// Exact softmax attention, differentiable once, f32 or f64, any strides, in memory
/// of the order of its inputs.
///
///     s_ij = scale (q_i . k_j + q_i . lag_keys[c]) + lag_bias[c] + key_bias[j]
///     c    = i - j + M - 1
///     o_i  = sum over visible j of softmax_j(s_i)_j (v_j + lag_values[c])
///
/// Shapes  q [B, H, N, D], k [B, H, M, D], v [B, H, M, E] -> [B, H, N, E].
///         Tables by lag hold rows, not positions: they are the same for any start. A
///         ragged batch without query_start reads entry (lag) + N - 1, which is c where
///         a sequence fills its places.
/// Rows that see nothing, or belong to no sequence, give zeros.
/// Maths   docs/maths/exact_attention.md
at::Tensor exact_attention(const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v, const ExactOptions& options);

}  // namespace lagwise::ops
