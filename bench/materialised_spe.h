#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace lagwise::bench {

/// SineSPE as its authors compute it, in plain torch: the codes of queries and of keys
/// are formed for every position, [1, N, H, D, R] each, gated, multiplied by queries
/// and keys, and summed over D.
///
///     wave(n)   = [cos(2 pi f n + offset), sin(2 pi f n + offset)] gain
///     code_q(n) = wave(n) z / (sqrt(2K) (R D)^(1/4))          one product per (h, d)
///     q'(n)     = sum_d q_d(n) (sqrt(1 - g_d) code_q,d(n) + sqrt(g_d) eps_d)
///
/// Paper  Liutkus et al., "Relative Positional Encoding for Transformers with Linear
///        Complexity", ICML 2021, section 3.
struct MaterialisedSpe {
  at::Tensor frequencies, offsets, gains;  ///< [H, D, K], raw
  at::Tensor gate;                         ///< [H, D], raw; undefined: not gated
};

/// The codes of queries and of keys, [1, N, H, D, R] each, before any gate: their
/// authors form them once a pass and share them between layers.
struct MaterialisedCodes {
  at::Tensor queries, keys;
};

/// At positions 0 .. n-1, from z [1, H, D, 2K, R]; undefined: drawn with torch's
/// generator, as theirs is.
MaterialisedCodes materialised_codes(const MaterialisedSpe& parameters, int64_t n,
                                     int64_t realizations, at::Tensor z);

/// What one layer does with them. eps [H, D, R]; undefined: drawn.
std::pair<at::Tensor, at::Tensor> materialised_filter(const at::Tensor& q,
                                                      const at::Tensor& k,
                                                      const MaterialisedCodes& codes,
                                                      const at::Tensor& gate,
                                                      at::Tensor eps);

/// Both: q, k [B, H, N, D] at positions 0 .. N-1.
std::pair<at::Tensor, at::Tensor> materialised_spe(const at::Tensor& q,
                                                   const at::Tensor& k,
                                                   const MaterialisedSpe& parameters,
                                                   int64_t realizations, at::Tensor z,
                                                   at::Tensor eps);

}  // namespace lagwise::bench
