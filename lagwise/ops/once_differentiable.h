#pragma once

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <string>

namespace lagwise::ops {

/// Wraps what a backward pass returns so that differentiating it again fails
/// with a message, instead of silently giving zero. For operators whose second
/// derivative does not exist yet.
inline torch::autograd::variable_list once_differentiable(
    const char* op, torch::autograd::variable_list gradients) {
  if (!at::GradMode::is_enabled()) return gradients;  // nobody will ask
  for (auto& gradient : gradients)
    if (gradient.defined()) gradient = gradient.detach().set_requires_grad(true);
  const auto refuse = std::make_shared<torch::autograd::DelayedError>(
      std::string(op) +
          ": expected to be differentiated once, got a second time; call it without "
          "create_graph",
      static_cast<int>(gradients.size()));
  return (*refuse)(std::move(gradients));
}

}  // namespace lagwise::ops
