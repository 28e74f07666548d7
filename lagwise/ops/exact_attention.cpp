#include "lagwise/ops/exact_attention.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <tuple>

#include "lagwise/ops/exact_call.h"
#include "lagwise/ops/once_differentiable.h"

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

Optional optional(const Tensor& x) { return x.defined() ? Optional(x) : c10::nullopt; }

/// The optional arguments in the order of the schemas.
struct Arguments {
  Optional lag_bias, lag_keys, lag_values, lengths, cu_seqlens;
};

ExactOptions options_of(const Arguments& x, bool causal, c10::optional<double> scale,
                        Whole query_start, int64_t key_start, Whole window) {
  const auto or_undefined = [](const Optional& t) { return t.value_or(Tensor()); };
  ExactOptions options;
  options.causal = causal;
  options.scale = scale;
  options.lag_bias = or_undefined(x.lag_bias);
  options.lag_keys = or_undefined(x.lag_keys);
  options.lag_values = or_undefined(x.lag_values);
  options.query_start = query_start;
  options.key_start = key_start;
  options.window = window;
  options.lengths = or_undefined(x.lengths);
  options.cu_seqlens = or_undefined(x.cu_seqlens);
  return options;
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
Two forward_op(const Tensor& q, const Tensor& k, const Tensor& v,
               const Optional& lag_bias, const Optional& lag_keys,
               const Optional& lag_values, const Optional& lengths,
               const Optional& cu_seqlens, bool causal, c10::optional<double> scale,
               Whole query_start, int64_t key_start, Whole window) {
  return compute(
      check_exact(q, k, v,
                  options_of({lag_bias, lag_keys, lag_values, lengths, cu_seqlens},
                             causal, scale, query_start, key_start, window)));
}

Two call_forward(const Tensor& q, const Tensor& k, const Tensor& v,
                 const ExactOptions& x) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lagwise::_exact_attention", "")
                             .typed<decltype(forward_op<forward_cpu>)>();
  return op.call(q, k, v, optional(x.lag_bias), optional(x.lag_keys),
                 optional(x.lag_values), optional(x.lengths), optional(x.cu_seqlens),
                 x.causal, x.scale, x.query_start, x.key_start, x.window);
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
                                bool values_wanted, const Tensor& q, const Tensor& k,
                                const Tensor& v, const Optional& lag_bias,
                                const Optional& lag_keys, const Optional& lag_values,
                                const Optional& lengths, const Optional& cu_seqlens,
                                bool causal, c10::optional<double> scale,
                                Whole query_start, int64_t key_start, Whole window) {
  const auto call =
      check_exact(q, k, v,
                  options_of({lag_bias, lag_keys, lag_values, lengths, cu_seqlens},
                             causal, scale, query_start, key_start, window));
  const auto g =
      compute(call, {out, stats}, d_out, {bias_wanted, keys_wanted, values_wanted});
  std::vector<Tensor> gradients = {g.q, g.k, g.v, g.lag_bias, g.lag_keys, g.lag_values};
  // The dispatcher returns no undefined tensors: absent inputs give empty ones.
  for (auto& gradient : gradients)
    if (!gradient.defined()) gradient = at::empty({0}, q.options());
  return gradients;
}

std::vector<Tensor> call_backward(const Tensor& d_out, const ExactForward& saved,
                                  const ExactWanted& wanted, const Tensor& q,
                                  const Tensor& k, const Tensor& v,
                                  const ExactOptions& x) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("lagwise::_exact_attention_backward", "")
          .typed<decltype(backward_op<exact_backward_cpu>)>();
  return op.call(d_out, saved.out, saved.stats, wanted.lag_bias, wanted.lag_keys,
                 wanted.lag_values, q, k, v, optional(x.lag_bias), optional(x.lag_keys),
                 optional(x.lag_values), optional(x.lengths), optional(x.cu_seqlens),
                 x.causal, x.scale, x.query_start, x.key_start, x.window);
}

// ---- autograd

struct ExactAttention : torch::autograd::Function<ExactAttention> {
  static variable_list forward(AutogradContext* ctx, const Tensor& q, const Tensor& k,
                               const Tensor& v, const Optional& lag_bias,
                               const Optional& lag_keys, const Optional& lag_values,
                               const ExactOptions& x) {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [out, stats] = call_forward(q, k, v, x);
    ctx->save_for_backward({q, k, v, x.lag_bias, x.lag_keys, x.lag_values, x.lengths,
                            x.cu_seqlens, out, stats});
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
    const auto x = ctx->get_saved_variables();
    const auto& data = ctx->saved_data;
    ExactOptions options;
    options.lag_bias = x[3], options.lag_keys = x[4], options.lag_values = x[5];
    options.lengths = x[6], options.cu_seqlens = x[7];
    options.causal = data.at("causal").toBool();
    options.scale = data.at("scale").toOptional<double>();
    options.query_start = data.at("query_start").toOptional<int64_t>();
    options.key_start = data.at("key_start").toInt();
    options.window = data.at("window").toOptional<int64_t>();
    const ExactWanted wanted{data.at("bias").toBool(), data.at("keys").toBool(),
                             data.at("values").toBool()};
    variable_list gradients;
    {
      at::AutoGradMode off(false);
      gradients =
          call_backward(grads[0], {x[8], x[9]}, wanted, x[0], x[1], x[2], options);
    }
    if (!wanted.lag_bias) gradients[3] = Tensor();
    if (!wanted.lag_keys) gradients[4] = Tensor();
    if (!wanted.lag_values) gradients[5] = Tensor();
    variable_list inputs(x.begin(), x.begin() + 6);
    inputs.push_back(grads[0]);
    gradients = once_differentiable(kOp, inputs, std::move(gradients));
    gradients.emplace_back();  // of the options
    return gradients;
  }
};

Two forward_autograd(const Tensor& q, const Tensor& k, const Tensor& v,
                     const Optional& lag_bias, const Optional& lag_keys,
                     const Optional& lag_values, const Optional& lengths,
                     const Optional& cu_seqlens, bool causal,
                     c10::optional<double> scale, Whole query_start, int64_t key_start,
                     Whole window) {
  const auto r = ExactAttention::apply(
      q, k, v, lag_bias, lag_keys, lag_values,
      options_of({lag_bias, lag_keys, lag_values, lengths, cu_seqlens}, causal, scale,
                 query_start, key_start, window));
  return {r[0], r[1]};
}

// ---- the public operator

Tensor exact_attention_op(const Tensor& q, const Tensor& k, const Tensor& v,
                          bool causal, c10::optional<double> scale,
                          const Optional& lag_bias, const Optional& lag_keys,
                          const Optional& lag_values, Whole query_start,
                          int64_t key_start, Whole window, const Optional& lengths,
                          const Optional& cu_seqlens) {
  return exact_attention(
      q, k, v,
      options_of({lag_bias, lag_keys, lag_values, lengths, cu_seqlens}, causal, scale,
                 query_start, key_start, window));
}

}  // namespace

Tensor exact_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                       const ExactOptions& options) {
  return std::get<0>(call_forward(q, k, v, options));
}

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  m.def(
      "exact_attention(Tensor q, Tensor k, Tensor v, *, bool causal=False, "
      "float? scale=None, Tensor? lag_bias=None, Tensor? lag_keys=None, "
      "Tensor? lag_values=None, int? query_start=None, int key_start=0, "
      "int? window=None, Tensor? lengths=None, Tensor? cu_seqlens=None) -> Tensor",
      exact_attention_op);
  m.def(
      "_exact_attention(Tensor q, Tensor k, Tensor v, Tensor? lag_bias, "
      "Tensor? lag_keys, Tensor? lag_values, Tensor? lengths, Tensor? cu_seqlens, "
      "bool causal, float? scale, int? query_start, int key_start, int? window) "
      "-> (Tensor out, Tensor stats)");
  m.def(
      "_exact_attention_backward(Tensor d_out, Tensor out, Tensor stats, "
      "bool bias_wanted, bool keys_wanted, bool values_wanted, Tensor q, Tensor k, "
      "Tensor v, Tensor? lag_bias, Tensor? lag_keys, Tensor? lag_values, "
      "Tensor? lengths, Tensor? cu_seqlens, bool causal, float? scale, "
      "int? query_start, int key_start, int? window) -> Tensor[]");
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
