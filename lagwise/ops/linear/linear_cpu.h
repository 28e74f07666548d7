#pragma once

#include "lagwise/ops/linear/linear_call.h"

namespace lagwise::ops {

struct LinearForward {
  at::Tensor out;       ///< [B, H, N, E]
  at::Tensor s;         ///< [B, H, D, E] after the last key
  at::Tensor z;         ///< [B, H, F]
  at::Tensor den;       ///< [B, H, N] after eps; [B, H, 0] without a denominator
  at::Tensor max = {};  ///< [B, H] after the last key; [B, H, 0] without log_scale
};

/// The gradients of the outputs; undefined tensors are zero.
struct LinearCotangents {
  at::Tensor out, s, z;
  bool decay = false;  ///< whether the gradient of the decay is wanted
  bool log_decay = false;
};

/// The gradients of the inputs, in the shapes of LinearCall; undefined for inputs that
/// were not given.
struct LinearGradients {
  at::Tensor q, k, v, q_norm, k_norm, decay, s, z, log_scale, log_decay, write_strength;
};

/// Threads are shared out over heads and, where those are few, over columns:
/// either way every number comes out with the same bits.
LinearForward linear_forward_cpu(const LinearCall& call);

/// The backward pass of linear attention is three linear attentions, two of which
/// may share a pass
/// (docs/maths/linear_attention.md, section 3).
LinearGradients linear_backward_cpu(const LinearCall& call, const LinearForward& saved,
                                    const LinearCotangents& cotangents);

}  // namespace lagwise::ops
