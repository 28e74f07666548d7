#include "lagwise/ops/dense.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include "lagwise/ops/dense_checks.h"
#include "lagwise/ops/dense_passes.h"
#include "lagwise/ops/torch/once_differentiable.h"
#include "lagwise/ops/torch/recorded.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "dense";

c10::optional<Tensor> if_defined(const Tensor& x) {
  return x.defined() ? c10::optional<Tensor>(x) : c10::nullopt;
}

/// What the gradients of one layer's weights are written to; undefined: not wanted.
struct WeightGradients {
  Tensor weight, bias;
  WeightGradients(const Tensor& like, bool wants_weight, bool wants_bias) {
    if (wants_weight) weight = at::empty(like.sizes(), like.options());
    if (wants_bias) bias = at::empty({like.size(0)}, like.options());
  }
};

Tensor plain(const Tensor& x, const DenseWeights& layer, const Tensor& start) {
  auto sizes = x.sizes().vec();
  sizes.back() = layer.weight.size(0);
  return dense_forward(dense_rows(x), layer.weight.contiguous(),
                       layer.bias.defined() ? layer.bias.contiguous() : Tensor(),
                       start.defined() ? dense_rows(start) : Tensor())
      .view(sizes);
}

struct DenseFunction : torch::autograd::Function<DenseFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight,
                        const c10::optional<Tensor>& bias,
                        const c10::optional<Tensor>& start) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["biased"] = bias.has_value();
    ctx->saved_data["started"] = start.has_value();
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return plain(x, {weight, bias.value_or(Tensor())}, start.value_or(Tensor()));
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1];
    const bool biased = ctx->saved_data["biased"].toBool();
    const bool started = ctx->saved_data["started"].toBool();
    Tensor dx, dw, db;
    {
      const at::AutoGradMode off(false);
      const Tensor dy = dense_rows(grads[0]);
      if (ctx->needs_input_grad(0)) {
        dx = at::empty(x.sizes(), dy.options());
        dense_input_gradient(dy, weight.contiguous(), false, dx.view({-1, x.size(-1)}));
      }
      const WeightGradients to(weight, ctx->needs_input_grad(1),
                               biased && ctx->needs_input_grad(2));
      dense_weight_gradients(dy, dense_rows(x), to.weight, to.bias);
      dw = to.weight, db = to.bias;
    }
    return once_differentiable(kOp, {x, weight, grads[0]},
                               {dx, dw, db, started ? grads[0] : Tensor()});
  }
};

/// tensors: x, then weight and bias of each layer; without a bias an empty tensor.
struct DenseEachFunction : torch::autograd::Function<DenseEachFunction> {
  static variable_list forward(AutogradContext* ctx, at::TensorList tensors) {
    ctx->save_for_backward(tensors.vec());
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    variable_list results;
    for (size_t i = 1; i < tensors.size(); i += 2) {
      const bool biased = tensors[i + 1].numel() > 0;
      results.push_back(
          plain(tensors[0], {tensors[i], biased ? tensors[i + 1] : Tensor()}, {}));
    }
    return results;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& x = saved[0];
    variable_list results(saved.size());
    {
      const at::AutoGradMode off(false);
      const Tensor rows = dense_rows(x);
      Tensor dx;
      for (size_t i = 0; i < grads.size(); ++i) {
        if (!grads[i].defined()) continue;
        const Tensor &weight = saved[2 * i + 1], &bias = saved[2 * i + 2];
        const Tensor dy = dense_rows(grads[i]);
        if (ctx->needs_input_grad(0)) {
          const bool first = !dx.defined();
          if (first) dx = at::empty({rows.size(0), rows.size(1)}, dy.options());
          dense_input_gradient(dy, weight.contiguous(), !first, dx);
        }
        const WeightGradients to(weight, ctx->needs_input_grad(2 * i + 1),
                                 bias.numel() > 0 && ctx->needs_input_grad(2 * i + 2));
        dense_weight_gradients(dy, rows, to.weight, to.bias);
        results[2 * i + 1] = to.weight, results[2 * i + 2] = to.bias;
      }
      if (dx.defined()) results[0] = dx.view(x.sizes());
    }
    variable_list inputs = saved;
    inputs.insert(inputs.end(), grads.begin(), grads.end());
    return once_differentiable(kOp, inputs, results);
  }
};

}  // namespace

Tensor dense(const Tensor& x, const Tensor& weight, const Tensor& bias,
             const Tensor& start) {
  check_dense(kOp, x, {weight, bias}, start);
  if (x.numel() == 0) {
    const Tensor y =
        bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
    return start.defined() ? y + start : y;
  }
  return recorded("lagwise::dense", x, weight, [&] {
    if (!wants_graph({x, weight, bias, start})) return plain(x, {weight, bias}, start);
    return DenseFunction::apply(x, weight, if_defined(bias), if_defined(start));
  });
}

std::vector<Tensor> dense_each(const Tensor& x,
                               const std::vector<DenseWeights>& layers) {
  std::vector<Tensor> tensors = {x}, results;
  for (const DenseWeights& layer : layers) {
    check_dense(kOp, x, layer, {});
    tensors.push_back(layer.weight);
    tensors.push_back(layer.bias.defined() ? layer.bias
                                           : at::empty({0}, layer.weight.options()));
  }
  if (x.numel() == 0 || !wants_graph(tensors)) {
    for (const DenseWeights& layer : layers)
      results.push_back(dense(x, layer.weight, layer.bias));
    return results;
  }
  const variable_list all = DenseEachFunction::apply(at::TensorList(tensors));
  for (size_t i = 0; i < layers.size(); ++i)
    results.push_back(
        recorded("lagwise::dense", x, layers[i].weight, [&] { return all[i]; }));
  return results;
}

}  // namespace lagwise::ops
