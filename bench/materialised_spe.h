#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace lagwise::bench {

/// SineSPE as its authors compute it, in plain torch: the codes of queries and of keys
/// are formed for every position, [1, N, H, D, R] each, gated, multiplied by queries
/// and keys, and summed over D.
///
///     code_q(n) = [cos(2 pi f n + offset), sin(2 pi f n + offset)] gain z / (sqrt(2K)
///                 (R D)^(1/4))                                   one product per (h,
///                 d)
///     q'(n)     = sum_d q_d(n) (sqrt(1 - g_d) code_q,d(n) + sqrt(g_d) eps_d)
///
/// Paper  Liutkus et al., "Relative Positional Encoding for Transformers with Linear
///        Complexity", ICML 2021, section 3.
struct MaterialisedSpe {
  at::Tensor frequencies, offsets, gains;  ///< [H, D, K], raw
  at::Tensor gate;                         ///< [H, D], raw; undefined: not gated
};

/// q, k [B, H, N, D] at positions 0 .. N-1; z [1, H, D, 2K, R], eps [H, D, R].
/// Undefined noise is drawn with torch's generator, as theirs is.
std::pair<at::Tensor, at::Tensor> materialised_spe(const at::Tensor& q,
                                                   const at::Tensor& k,
                                                   const MaterialisedSpe& parameters,
                                                   int64_t realizations, at::Tensor z,
                                                   at::Tensor eps);

}  // namespace lagwise::bench
