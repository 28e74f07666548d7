#include "lagwise/ops/exact_attention.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <tuple>

#include "lagwise/ops/exact_call.h"
#include "lagwise/ops/expect.h"
#include "lagwise/ops/once_differentiable.h"
#include "lagwise/ops/optional_tensors.h"

// The operators, in this order: the private pair that computes (CPU, Meta,
// Autograd), the public one on top of it, registration.

namespace lagwise::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Optional = c10::optional<Tensor>;
using Whole = c10::optional<int64_t>;
using Two = std::tuple<Tensor, Tensor>;

constexpr const char* kOp = "exact_attention";

/// Every tensor a call takes. Inside this file they travel as one list, in this order;
/// those from kFirstFixed on have no gradient.
enum Input : size_t {
  kQ,
  kK,
  kV,
  kLagBias,
  kLagKeys,
  kLagValues,
  kFirstFixed,
  kLengths = kFirstFixed,
  kKeyLengths,
  kCuts,
  kKeyCuts,
  kInputs
};

variable_list list_inputs(const Tensor& q, const Tensor& k, const Tensor& v,
                          const ExactOptions& options) {
  variable_list x(kInputs);
  x[kQ] = q, x[kK] = k, x[kV] = v;
  x[kLagBias] = options.lag_bias, x[kLagKeys] = options.lag_keys;
  x[kLagValues] = options.lag_values;
  x[kLengths] = options.lengths, x[kKeyLengths] = options.key_lengths;
  x[kCuts] = options.cu_seqlens, x[kKeyCuts] = options.key_cu_seqlens;
  return x;
}

ExactOptions options_of(const variable_list& x, bool causal,
                        c10::optional<double> scale, Whole query_start,
                        int64_t key_start, Whole window) {
  ExactOptions options;
  options.causal = causal;
  options.scale = scale;
  options.query_start = query_start;
  options.key_start = key_start;
  options.window = window;
  options.lag_bias = x[kLagBias], options.lag_keys = x[kLagKeys];
  options.lag_values = x[kLagValues];
  options.lengths = x[kLengths], options.key_lengths = x[kKeyLengths];
  options.cu_seqlens = x[kCuts], options.key_cu_seqlens = x[kKeyCuts];
  return options;
}

ExactCall check_inputs(const variable_list& x, const ExactOptions& options) {
  return check_exact(x[kQ], x[kK], x[kV], options);
}

// ---- _exact_attention: out, stats

Two forward_cpu(const ExactCall& call) {
  const ExactForward r = exact_forward_cpu(call);
  return {r.out, r.stats};
}

Two forward_meta(const ExactCall& call) {
  const auto options = call.q.options();
  return {at::empty({call.b, call.h, call.n, call.e}, options),
          at::empty({call.b, call.h, call.n, 2}, options)};
}

template <Two (*compute)(const ExactCall&)>
Two forward_op(const Optionals& inputs, bool causal, c10::optional<double> scale,
               Whole query_start, int64_t key_start, Whole window) {
  const variable_list x = unpack(kOp, inputs, kInputs, kV + 1);
  return compute(
      check_inputs(x, options_of(x, causal, scale, query_start, key_start, window)));
}

Two call_forward(const variable_list& x, const ExactOptions& options) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lagwise::_exact_attention", "")
                             .typed<decltype(forward_op<forward_cpu>)>();
  return op.call(pack(x), options.causal, options.scale, options.query_start,
                 options.key_start, options.window);
}

// ---- _exact_attention_backward: dq, dk, dv, d lag_bias, d lag_keys, d lag_values

ExactGradient backward_meta(const ExactCall& call, const ExactForward&, const Tensor&,
                            const ExactWanted& wanted) {
  const auto like = [](const Tensor& x, bool want) {
    return want && x.defined() ? at::empty(x.sizes(), x.options()) : Tensor();
  };
  Tensor bias = like(call.lag_bias, wanted.lag_bias);
  return {like(call.q, true),
          like(call.k, true),
          like(call.v, true),
          bias.defined() ? bias.squeeze(-1) : bias,
          like(call.lag_keys, wanted.lag_keys),
          like(call.lag_values, wanted.lag_values)};
}

template <ExactGradient (*compute)(const ExactCall&, const ExactForward&, const Tensor&,
                                   const ExactWanted&)>
std::vector<Tensor> backward_op(const Tensor& d_out, const Tensor& out,
                                const Tensor& stats, bool bias_wanted, bool keys_wanted,
                                bool values_wanted, const Optionals& inputs,
                                bool causal, c10::optional<double> scale,
                                Whole query_start, int64_t key_start, Whole window) {
  const variable_list x = unpack(kOp, inputs, kInputs, kV + 1);
  const auto call =
      check_inputs(x, options_of(x, causal, scale, query_start, key_start, window));
  const std::vector<int64_t> rows = {call.b, call.h, call.n, call.e};
  expect_tensor(kOp, "d_out", "[B, H, N, E]", d_out, rows, call.q);
  expect_tensor(kOp, "out", "[B, H, N, E]", out, rows, call.q);
  expect_tensor(kOp, "stats", "[B, H, N, 2]", stats, {call.b, call.h, call.n, 2},
                call.q);
  const auto g = compute(call, {out.contiguous(), stats.contiguous()}, d_out,
                         {bias_wanted, keys_wanted, values_wanted});
  std::vector<Tensor> gradients = {g.q, g.k, g.v, g.lag_bias, g.lag_keys, g.lag_values};
  // The dispatcher returns no undefined tensors: absent inputs give empty ones.
  for (auto& gradient : gradients)
    if (!gradient.defined()) gradient = at::empty({0}, call.q.options());
  return gradients;
}

std::vector<Tensor> call_backward(const Tensor& d_out, const ExactForward& saved,
                                  const ExactWanted& wanted, const variable_list& x,
                                  const ExactOptions& options) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("lagwise::_exact_attention_backward", "")
          .typed<decltype(backward_op<exact_backward_cpu>)>();
  return op.call(d_out, saved.out, saved.stats, wanted.lag_bias, wanted.lag_keys,
                 wanted.lag_values, pack(x), options.causal, options.scale,
                 options.query_start, options.key_start, options.window);
}

// ---- autograd

struct ExactAttention : torch::autograd::Function<ExactAttention> {
  static variable_list forward(AutogradContext* ctx, const Tensor& q, const Tensor& k,
                               const Tensor& v, const Optional& lag_bias,
                               const Optional& lag_keys, const Optional& lag_values,
                               const ExactOptions& x) {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    variable_list saved = list_inputs(q, k, v, x);
    const auto [out, stats] = call_forward(saved, x);
    saved.insert(saved.end(), {out, stats});
    ctx->save_for_backward(saved);
    const auto wants = [](const Optional& t) { return t && t->requires_grad(); };
    ctx->saved_data["bias"] = wants(lag_bias);
    ctx->saved_data["keys"] = wants(lag_keys);
    ctx->saved_data["values"] = wants(lag_values);
    ctx->saved_data["causal"] = x.causal;
    ctx->saved_data["scale"] = x.scale;
    ctx->saved_data["query_start"] = x.query_start;
    ctx->saved_data["key_start"] = x.key_start;
    ctx->saved_data["window"] = x.window;
    ctx->mark_non_differentiable({stats});
    return {out, stats};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const variable_list x(saved.begin(), saved.begin() + kInputs);
    const auto& data = ctx->saved_data;
    const ExactOptions options = options_of(
        x, data.at("causal").toBool(), data.at("scale").toOptional<double>(),
        data.at("query_start").toOptional<int64_t>(), data.at("key_start").toInt(),
        data.at("window").toOptional<int64_t>());
    const ExactWanted wanted{data.at("bias").toBool(), data.at("keys").toBool(),
                             data.at("values").toBool()};
    variable_list gradients;
    {
      at::AutoGradMode off(false);
      gradients = call_backward(grads[0], {saved[kInputs], saved[kInputs + 1]}, wanted,
                                x, options);
    }
    if (!wanted.lag_bias) gradients[kLagBias] = Tensor();
    if (!wanted.lag_keys) gradients[kLagKeys] = Tensor();
    if (!wanted.lag_values) gradients[kLagValues] = Tensor();
    variable_list depends(x.begin(), x.begin() + kFirstFixed);
    depends.push_back(grads[0]);
    gradients = once_differentiable(kOp, depends, std::move(gradients));
    gradients.emplace_back();  // of the options
    return gradients;
  }
};

Two forward_autograd(const Optionals& inputs, bool causal, c10::optional<double> scale,
                     Whole query_start, int64_t key_start, Whole window) {
  const variable_list x = unpack(kOp, inputs, kInputs, kV + 1);
  const auto r = ExactAttention::apply(
      x[kQ], x[kK], x[kV], inputs.get(kLagBias), inputs.get(kLagKeys),
      inputs.get(kLagValues),
      options_of(x, causal, scale, query_start, key_start, window));
  return {r[0], r[1]};
}

// ---- the public operator

Tensor exact_attention_op(const Tensor& q, const Tensor& k, const Tensor& v,
                          bool causal, c10::optional<double> scale,
                          const Optional& lag_bias, const Optional& lag_keys,
                          const Optional& lag_values, Whole query_start,
                          int64_t key_start, Whole window, const Optional& lengths,
                          const Optional& key_lengths, const Optional& cu_seqlens,
                          const Optional& key_cu_seqlens) {
  const auto or_undefined = [](const Optional& x) { return x.value_or(Tensor()); };
  ExactOptions options;
  options.causal = causal;
  options.scale = scale;
  options.lag_bias = or_undefined(lag_bias);
  options.lag_keys = or_undefined(lag_keys);
  options.lag_values = or_undefined(lag_values);
  options.query_start = query_start;
  options.key_start = key_start;
  options.window = window;
  options.lengths = or_undefined(lengths);
  options.key_lengths = or_undefined(key_lengths);
  options.cu_seqlens = or_undefined(cu_seqlens);
  options.key_cu_seqlens = or_undefined(key_cu_seqlens);
  return exact_attention(q, k, v, options);
}

}  // namespace

Tensor exact_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                       const ExactOptions& options) {
  return std::get<0>(call_forward(list_inputs(q, k, v, options), options));
}

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  m.def(
      "exact_attention(Tensor q, Tensor k, Tensor v, *, bool causal=False, "
      "float? scale=None, Tensor? lag_bias=None, Tensor? lag_keys=None, "
      "Tensor? lag_values=None, int? query_start=None, int key_start=0, "
      "int? window=None, Tensor? lengths=None, Tensor? key_lengths=None, "
      "Tensor? cu_seqlens=None, Tensor? key_cu_seqlens=None) -> Tensor",
      exact_attention_op);
  m.def(
      "_exact_attention(Tensor?[] inputs, bool causal, float? scale, "
      "int? query_start, int key_start, int? window) -> (Tensor out, Tensor stats)");
  m.def(
      "_exact_attention_backward(Tensor d_out, Tensor out, Tensor stats, "
      "bool bias_wanted, bool keys_wanted, bool values_wanted, "
      "Tensor?[] inputs, bool causal, float? scale, int? query_start, int key_start, "
      "int? window) -> Tensor[]");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("_exact_attention", forward_op<forward_cpu>);
  m.impl("_exact_attention_backward", backward_op<exact_backward_cpu>);
}
TORCH_LIBRARY_IMPL(lagwise, Meta, m) {
  m.impl("_exact_attention", forward_op<forward_meta>);
  m.impl("_exact_attention_backward", backward_op<backward_meta>);
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("_exact_attention", forward_autograd);
}

}  // namespace lagwise::ops
