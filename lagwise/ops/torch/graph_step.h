#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lagwise/ops/torch/once_differentiable.h"

namespace lagwise::ops {

/// What turns the gradients of all results, zeros where nobody used one, into those of
/// all inputs.
using BackwardStep = std::function<std::vector<at::Tensor>(std::vector<at::Tensor>)>;

struct HeldBackwardStep : torch::CustomClassHolder {
  explicit HeldBackwardStep(BackwardStep given) : run(std::move(given)) {}
  BackwardStep run;
};

struct GraphStepFunction : torch::autograd::Function<GraphStepFunction> {
  using Variables = torch::autograd::variable_list;
  using Context = torch::autograd::AutogradContext;

  static Variables forward(Context* ctx, at::TensorList inputs, Variables results,
                           const std::string& name, const BackwardStep& backward) {
    ctx->saved_data["inputs"] = static_cast<int64_t>(inputs.size());
    ctx->saved_data["name"] = name;
    ctx->saved_data["backward"] =
        c10::IValue::make_capsule(c10::make_intrusive<HeldBackwardStep>(backward));
    return results;
  }

  static Variables backward(Context* ctx, Variables gradients) {
    const auto held = ctx->saved_data["backward"].toCapsule();
    Variables depends = gradients, results;
    {
      const at::AutoGradMode off(false);
      results = static_cast<HeldBackwardStep&>(*held).run(std::move(gradients));
    }
    results = once_differentiable(ctx->saved_data["name"].toStringRef().c_str(),
                                  depends, std::move(results));
    results.resize(3 + static_cast<size_t>(ctx->saved_data["inputs"].toInt()));
    return results;
  }
};

/// Makes `results`, computed from `inputs` (all defined) without a graph, one step of
/// it. For steps that are shared with peers: every rank runs `backward` exactly once as
/// long as it uses one of the results, whatever the others do with theirs. What
/// `backward` holds lives as long as the graph.
inline std::vector<at::Tensor> graph_step(const char* name,
                                          const std::vector<at::Tensor>& inputs,
                                          std::vector<at::Tensor> results,
                                          const BackwardStep& backward) {
  return GraphStepFunction::apply(at::TensorList(inputs), std::move(results),
                                  std::string(name), backward);
}

}  // namespace lagwise::ops
