#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>

namespace lagwise::ops {

/// What to compute. Every tensor is optional; undefined means "none".
struct ExactOptions {
  bool causal = false;                      ///< key position <= query position
  c10::optional<double> scale = {};         ///< 1 / sqrt(D) unless given
  at::Tensor lag_bias = {};                 ///< [1|H, N+M-1], added after the scale
  at::Tensor lag_keys = {};                 ///< [1|H, N+M-1, D], inside the scale
  at::Tensor lag_values = {};               ///< [1|H, N+M-1, E]
  c10::optional<int64_t> query_start = {};  ///< key_start + M - N unless given
  int64_t key_start = 0;                    ///< row i stands at query_start + i, key j
                                            ///<   at key_start + j
  c10::optional<int64_t> window = {};       ///< |lag| < window
  at::Tensor lengths = {};     ///< int64 [B]: keys past it are hidden. Where N = M the
                               ///<   rows past it give zeros as well
  at::Tensor cu_seqlens = {};  ///< int64 [S+1], 0 .. N: B = 1, N = M, and S sequences
                               ///<   one after another that do not see each other
};

/// Exact softmax attention, differentiable once, f32 or f64, any strides, in memory
/// of the order of its inputs.
///
///     s_ij = scale (q_i . k_j + q_i . lag_keys[c]) + lag_bias[c],  c = i - j + M - 1
///     o_i  = sum over visible j of softmax_j(s_i)_j (v_j + lag_values[c])
///
/// Shapes  q [B, H, N, D], k [B, H, M, D], v [B, H, M, E] -> [B, H, N, E].
///         Tables by lag hold rows, not positions: they are the same for any start.
/// Rows that see nothing give zeros.
/// Maths   docs/maths/exact_attention.md
at::Tensor exact_attention(const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v, const ExactOptions& options);

}  // namespace lagwise::ops
