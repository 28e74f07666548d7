#pragma once

#include "lagwise/ops/spe/sine_spe_call.h"

namespace lagwise::ops {

/// The gradients of the inputs, in the shapes of the call; undefined for a constant
/// that was not given.
struct SineGradientsOf {
  at::Tensor q, k, frequency, phase, amplitude, constant;
};

/// Fills q_out [B, H, N, R] and k_out [B, H, M, R].
void sine_spe_cpu(const SineCall& call, at::Tensor& q_out, at::Tensor& k_out);

SineGradientsOf sine_spe_backward_cpu(const SineCall& call, const at::Tensor& dq_out,
                                      const at::Tensor& dk_out);

}  // namespace lagwise::ops
