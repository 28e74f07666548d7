#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

namespace lagwise::ops {

/// The waves of every head: f64, whatever the queries are, because a frequency
/// rounded to float is a whole turn off after 10^7 positions.
struct SineWaves {
  at::Tensor frequency;  ///< [H, D, K], turns per position
  at::Tensor phase;      ///< [H, D, K], radians, of queries only
  at::Tensor amplitude;  ///< [H, D, K]
  at::Tensor constant;   ///< [H, D], the wave that does not move; undefined: none
};

/// What turns F features into R numbers. Either dense noise, z [H, D, 2K, R] and, where
/// there is a constant, gate [H, D, R], in the type of the queries; or a fold [H, F],
/// int64, F = (2K + 1) D or 2K D: feature f goes to bin |fold| - 1 with fold's sign.
struct SineMixing {
  at::Tensor z, gate;
  at::Tensor fold;
  int64_t width = 0;  ///< R
};

/// SineSPE, gated or not, as one fused operator: differentiable once by q, k and every
/// wave; f32 or f64, any strides.
///
///     w_q(n) = [a_k cos(2 pi f_k n + phase_k), a_k sin(2 pi f_k n + phase_k), c]
///     w_k(n) = the same with phase 0
///     q'(n)  = [q_d w_q,d(n)]_d [z; gate],   k'(n) = [k_d w_k,d(n)]_d [z; gate]
///
/// Shapes  q [B, H, N, D], k [B, H, M, D] -> [B, H, N, R], [B, H, M, R]; q_at [N] or
///         [B, N] and k_at [M] or [B, M]: positions, f64.
/// Cost    no memory for the code [N, H, D, R]; O(1) at any position.
/// Maths   docs/maths/spe.md
std::pair<at::Tensor, at::Tensor> sine_spe(const at::Tensor& q, const at::Tensor& k,
                                           const SineWaves& waves,
                                           const SineMixing& mixing,
                                           const at::Tensor& q_at,
                                           const at::Tensor& k_at);

}  // namespace lagwise::ops
