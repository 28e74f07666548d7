#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lagwise::ops {

struct CrossEntropy {
  at::Tensor sum;     ///< scalar, differentiable by the scores
  at::Tensor each;    ///< [..], without a gradient; 0 where a target is below 0
  int64_t right = 0;  ///< rows whose largest score is at the target
};

/// The sum over rows of ln sum_j e^(x_j) - x_target, for targets from 0 on. Loss,
/// gradient and hits come from one pass over the scores; the gradient waits for the
/// backward pass.
///
/// Shapes  scores [.., V], targets [..] of int64; f32 or f64
CrossEntropy cross_entropy(const at::Tensor& scores, const at::Tensor& targets);

}  // namespace lagwise::ops
