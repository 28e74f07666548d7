#include "lagwise/ops/dense.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include "lagwise/ops/dense_checks.h"
#include "lagwise/ops/dense_passes.h"
#include "lagwise/ops/precision.h"
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

/// x: as it is multiplied, so are its weights.
Tensor plain(const Tensor& x, const DenseWeights& layer, const Tensor& start) {
  auto sizes = x.sizes().vec();
  sizes.back() = layer.weight.size(0);
  return dense_forward(dense_rows(x), layer.weight.to(x.scalar_type()).contiguous(),
                       layer.bias.defined() ? layer.bias.contiguous() : Tensor(),
                       start.defined() ? dense_rows(start) : Tensor())
      .view(sizes);
}

struct DenseFunction : torch::autograd::Function<DenseFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight,
                        const c10::optional<Tensor>& bias,
                        const c10::optional<Tensor>& start) {
    ctx->saved_data["biased"] = bias.has_value();
    ctx->saved_data["started"] = start.has_value();
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const Tensor factor = in_precision(x, precision());
    ctx->save_for_backward({factor, weight});
    return plain(factor, {weight, bias.value_or(Tensor())}, start.value_or(Tensor()));
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1];
    const bool biased = ctx->saved_data["biased"].toBool();
    const bool started = ctx->saved_data["started"].toBool();
    Tensor dx, dw, db;
    {
      const at::AutoGradMode off(false);
      const Tensor dy = dense_rows(grads[0]).to(x.scalar_type());
      if (ctx->needs_input_grad(0)) {
        dx = at::empty(x.sizes(), weight.options());
        dense_input_gradient(dy, weight.to(x.scalar_type()).contiguous(), false,
                             dx.view({-1, x.size(-1)}));
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
    if (!wants_graph({x, weight, bias, start}))
      return plain(in_precision(x, precision()), {weight, bias}, start);
    return DenseFunction::apply(x, weight, if_defined(bias), if_defined(start));
  });
}

}  // namespace lagwise::ops
