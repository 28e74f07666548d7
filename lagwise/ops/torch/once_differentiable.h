#pragma once

#include <ATen/core/grad_mode.h>

#include <string>
#include <utility>

#include "lagwise/ops/torch/node.h"

namespace lagwise::ops {

/// Stands between what a backward pass was given and what it returns, and refuses to be
/// differentiated itself.
struct RefuseSecondDerivative : torch::autograd::Node {
  std::string op;

  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override {
    TORCH_CHECK(false, op,
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
  torch::autograd::variable_list from;
  for (const auto& x : inputs)
    if (x.defined() && x.requires_grad()) from.push_back(x);
  if (from.empty()) return gradients;
  const auto node = make_node<RefuseSecondDerivative>();
  node->op = op;
  node->set_next_edges(torch::autograd::collect_next_edges(from));
  for (auto& x : gradients) {
    if (!x.defined()) continue;
    for (const auto& y : inputs)
      if (x.is_same(y)) x = x.detach();  // handed on: it has a past of its own
    torch::autograd::set_history(x, node);
  }
  return gradients;
}

}  // namespace lagwise::ops
