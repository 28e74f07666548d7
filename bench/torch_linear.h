#pragma once

#include <ATen/core/Tensor.h>

#include "lagwise/ops/linear_attention.h"

namespace lagwise::bench {

/// Linear attention in plain ATen, differentiable by autograd: what a careful
/// PyTorch user would write. It is the `torch` baseline of the benchmarks and
/// the second reference of the tests, so it knows nothing of our kernels.
///
/// Takes the arguments of ops::linear_attention_stateful, f32 or f64. It checks
/// nothing: the operator owns the checks.
///
/// Cost    causal: O(N C) within chunks of C = 128 rows and O(N D E) between
///         them; with a decay per channel C = 16, because a chunk then holds
///         C C D numbers.
ops::LinearResult torch_linear(const at::Tensor& q, const at::Tensor& k,
                               const at::Tensor& v, const ops::LinearState& from,
                               const ops::LinearOptions& options);

/// One token of the same in eager PyTorch style. Advances `state` in place and
/// returns [B, H, E]; arguments as in ops::linear_attention_step.
at::Tensor torch_step(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                      const ops::LinearState& state, const ops::LinearOptions& options);

}  // namespace lagwise::bench
