#pragma once

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>

#include "lagwise/ops/torch/level_by_level.h"

namespace lagwise::ops {

/// Stands between what a backward pass was given and what it returns. It hands the
/// gradients on, and refuses to be differentiated itself.
struct RefuseSecondDerivative : torch::autograd::Function<RefuseSecondDerivative> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* ctx,
                                                at::TensorList /*inputs*/,
                                                torch::autograd::variable_list results,
                                                const std::string& op) {
    ctx->saved_data["op"] = op;
    return results;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list) {
    TORCH_CHECK(false, ctx->saved_data["op"].toStringRef(),
                ": expected to be differentiated once, got a second time; call it "
                "without create_graph");
  }
};

/// Wraps what a backward pass returns so that differentiating it again fails with a
/// message, instead of silently giving zero. For operators whose second derivative
/// does not exist yet. `inputs`: what the gradients depend on.
inline torch::autograd::variable_list once_differentiable(
    const char* op, const torch::autograd::variable_list& inputs,
    torch::autograd::variable_list gradients) {
  if (!at::GradMode::is_enabled()) return gradients;  // nobody will ask
  torch::autograd::variable_list from, results;
  for (const auto& x : inputs)
    if (x.defined()) from.push_back(x);
  for (const auto& x : gradients)
    if (x.defined()) results.push_back(x);
  const LevelByLevel under_torch_func;
  const auto guarded =
      RefuseSecondDerivative::apply(at::TensorList(from), results, std::string(op));
  size_t next = 0;
  for (auto& x : gradients)
    if (x.defined()) x = guarded[next++];
  return gradients;
}

}  // namespace lagwise::ops
