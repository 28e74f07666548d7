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
#include "lagwise/ops/rms_norm.h"
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

/// What an empty tensor stands for in the lists of DenseEachFunction.
Tensor or_none(const Tensor& x) { return x.numel() > 0 ? x : Tensor(); }

/// tensors: x, the gain of the norm, then weight and bias of each layer; where there is
/// none, an empty tensor.
struct DenseEachFunction : torch::autograd::Function<DenseEachFunction> {
  static variable_list forward(AutogradContext* ctx, at::TensorList tensors,
                               double eps) {
    ctx->save_for_backward(tensors.vec());
    ctx->saved_data["eps"] = eps;
    ctx->saved_data["short"] = precision() == Precision::bf16;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const Tensor x =
        in_precision(normed(tensors[0], {or_none(tensors[1]), eps}).y, precision());
    variable_list results;
    for (size_t i = 2; i < tensors.size(); i += 2)
      results.push_back(plain(x, {tensors[i], or_none(tensors[i + 1])}, {}));
    results.push_back(tensors[0]);
    ctx->set_materialize_grads(false);
    return results;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &gain = saved[1];
    variable_list results(saved.size() + 1);
    {
      const at::AutoGradMode off(false);
      const RmsForward norm =
          normed(x, {or_none(gain), ctx->saved_data["eps"].toDouble()});
      const auto precision =
          ctx->saved_data["short"].toBool() ? Precision::bf16 : Precision::full;
      const Tensor rows = in_precision(dense_rows(norm.y), precision);
      const bool wants_rows = ctx->needs_input_grad(0) || ctx->needs_input_grad(1);
      Tensor d_rows;
      const Tensor past = grads.back().defined() ? grads.back().contiguous() : Tensor();
      for (size_t i = 0; i + 1 < grads.size(); ++i) {
        if (!grads[i].defined()) continue;
        const size_t at = 2 * i + 2;
        const Tensor dy = in_precision(dense_rows(grads[i]), precision);
        if (wants_rows) {
          const bool first = !d_rows.defined();
          if (first) d_rows = at::empty(rows.sizes(), x.options());
          dense_input_gradient(dy, in_precision(saved[at], precision).contiguous(),
                               !first, d_rows);
        }
        const WeightGradients to(
            saved[at], ctx->needs_input_grad(at),
            saved[at + 1].numel() > 0 && ctx->needs_input_grad(at + 1));
        dense_weight_gradients(dy, rows, to.weight, to.bias);
        results[at] = to.weight, results[at + 1] = to.bias;
      }
      if (d_rows.defined() && norm.inv_size.defined()) {
        const RmsGradients through =
            rms_backward(x.contiguous(), gain.contiguous(), norm.inv_size,
                         d_rows.view(x.sizes()), past);
        results[0] = through.x, results[1] = through.gain;
      } else if (d_rows.defined()) {
        results[0] = d_rows.view(x.sizes());
        if (past.defined()) results[0] = results[0] + past;
      } else {
        results[0] = past;
      }
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
    if (!wants_graph({x, weight, bias, start}))
      return plain(in_precision(x, precision()), {weight, bias}, start);
    return DenseFunction::apply(x, weight, if_defined(bias), if_defined(start));
  });
}

DenseEach dense_each(const Tensor& x, const std::vector<DenseWeights>& layers,
                     const InputNorm& norm) {
  check_norm(kOp, x, norm);
  const Tensor none = at::empty({0}, x.options().requires_grad(false));
  const auto or_empty = [&](const Tensor& t) { return t.defined() ? t : none; };
  std::vector<Tensor> tensors = {x, or_empty(norm.gain)};
  for (const DenseWeights& layer : layers) {
    check_dense(kOp, x, layer, {});
    tensors.push_back(layer.weight);
    tensors.push_back(or_empty(layer.bias));
  }
  DenseEach results;
  if (x.numel() == 0 || !wants_graph(tensors)) {
    const Tensor rows = norm.gain.defined() ? rms_norm(x, norm.gain, norm.eps) : x;
    for (const DenseWeights& layer : layers)
      results.y.push_back(dense(rows, layer.weight, layer.bias));
    results.x = x;
    return results;
  }
  const variable_list all = DenseEachFunction::apply(at::TensorList(tensors), norm.eps);
  for (size_t i = 0; i < layers.size(); ++i)
    results.y.push_back(
        recorded("lagwise::dense", x, layers[i].weight, [&] { return all[i]; }));
  results.x = all.back();
  return results;
}

}  // namespace lagwise::ops
