#pragma once

#include <ATen/core/Tensor.h>

#include "lagwise/ops/linear_attention.h"

namespace lagwise::bench {

/// Linear attention with gates and writing strengths in plain ATen, differentiable by
/// autograd: what a careful PyTorch user would write. Of the options they know
/// log_decay, write_strength and decay [H]; no feature map, no denominator, no borders.
/// They check nothing: the operator owns the checks.

/// In chunks of 64 rows. All products within chunks, and the triangular systems of the
/// delta rule, are batched over all chunks; only the state goes from chunk to chunk.
/// N must be a multiple of 64.
at::Tensor torch_chunked(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const ops::LinearOptions& options);

/// Token by token.
at::Tensor torch_loop(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                      const ops::LinearOptions& options);

/// One token; advances `state` in place. log_decay and write_strength are [B, H].
at::Tensor torch_gated_step(const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const ops::LinearState& state,
                            const ops::LinearOptions& options);

}  // namespace lagwise::bench
