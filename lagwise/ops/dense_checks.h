#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <vector>

#include "lagwise/ops/dense.h"

namespace lagwise::ops {

/// Whether autograd would record a call of these. Without it a node costs more than the
/// product of a single token.
inline bool wants_graph(const std::vector<at::Tensor>& tensors) {
  if (!at::GradMode::is_enabled()) return false;
  for (const at::Tensor& x : tensors)
    if (x.defined() && x.requires_grad()) return true;
  return false;
}

/// Refuses shapes and types that do not fit, in one line.
inline void check_dense(const char* op, const at::Tensor& x, const DenseWeights& layer,
                        const at::Tensor& start) {
  const auto &weight = layer.weight, &bias = layer.bias;
  const auto type = x.scalar_type();
  TORCH_CHECK(weight.dim() == 2, op, ": expected weight [O, I], got ", weight.sizes());
  TORCH_CHECK(x.dim() >= 1 && x.size(-1) == weight.size(1), op,
              ": expected x [.., I] with I = ", weight.size(1), ", got ", x.sizes());
  TORCH_CHECK(!bias.defined() || bias.sizes() == weight.sizes().slice(0, 1), op,
              ": expected bias [O] with O = ", weight.size(0), ", got ", bias.sizes());
  TORCH_CHECK(type == at::kFloat || type == at::kDouble, op,
              ": expected x of Float or Double, got ", type);
  for (const at::Tensor* other : {&weight, &bias, &start})
    TORCH_CHECK(!other->defined() || other->scalar_type() == type, op,
                ": expected all tensors of ", type, ", got ", other->scalar_type());
  if (!start.defined()) return;
  auto sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  TORCH_CHECK(start.sizes() == at::IntArrayRef(sizes), op, ": expected start ", sizes,
              ", got ", start.sizes());
}

inline void check_norm(const char* op, const at::Tensor& x, const InputNorm& norm) {
  const at::Tensor& gain = norm.gain;
  if (!gain.defined()) return;
  const bool fits = (gain.dim() == 1 || gain.dim() == 2) && gain.numel() == x.size(-1);
  TORCH_CHECK(fits && gain.scalar_type() == x.scalar_type(), op,
              ": expected the gain of a norm [I] or [G, I / G] with I = ", x.size(-1),
              " of ", x.scalar_type(), ", got ", gain.sizes(), " of ",
              gain.scalar_type());
}

}  // namespace lagwise::ops
