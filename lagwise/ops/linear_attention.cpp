#include "lagwise/ops/linear_attention.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <tuple>

#include "lagwise/ops/linear_cpu.h"
#include "lagwise/ops/once_differentiable.h"

// The operators, in this order: the private pair that computes (CPU, Meta,
// Autograd), the public ones on top of it, registration.

namespace lagwise::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Optional = c10::optional<Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

constexpr const char* kOp = "linear_attention";

Tensor value_or_undefined(const Optional& x) { return x.value_or(Tensor()); }
Optional optional(const Tensor& x) { return x.defined() ? Optional(x) : c10::nullopt; }

LinearOptions options_of(const Optional& decay, const Optional& q_norm,
                         const Optional& k_norm, bool causal, c10::string_view map,
                         c10::string_view denominator, double eps,
                         c10::string_view eps_mode) {
  LinearOptions options;
  options.causal = causal;
  options.feature_map = std::string(map);
  options.decay = value_or_undefined(decay);
  options.denominator = std::string(denominator);
  options.q_norm = value_or_undefined(q_norm);
  options.k_norm = value_or_undefined(k_norm);
  options.eps = eps;
  options.eps_mode = std::string(eps_mode);
  return options;
}

// ---- _linear_attention: out, s, z, den

Four forward_cpu(const LinearCall& call) {
  const LinearForward r = linear_forward_cpu(call);
  return {r.out, r.s, r.z, r.den};
}

Four forward_meta(const LinearCall& call) {
  const auto make = [&](at::IntArrayRef sizes) {
    return at::empty(sizes, call.q.options());
  };
  const int64_t dens = call.divide == LinearCall::Divide::none ? 0 : call.n;
  return {make({call.b, call.h, call.n, call.e}),
          make({call.b, call.h, call.d, call.e}), make({call.b, call.h, call.f}),
          make({call.b, call.h, dens})};
}

template <Four (*compute)(const LinearCall&)>
Four forward_op(const Tensor& q, const Tensor& k, const Tensor& v, const Optional& s,
                const Optional& z, const Optional& decay, const Optional& q_norm,
                const Optional& k_norm, bool causal, c10::string_view map,
                c10::string_view denominator, double eps, c10::string_view eps_mode) {
  const LinearState from{value_or_undefined(s), value_or_undefined(z)};
  return compute(check_linear(
      kOp, q, k, v, from,
      options_of(decay, q_norm, k_norm, causal, map, denominator, eps, eps_mode)));
}

Four call_forward(const Tensor& q, const Tensor& k, const Tensor& v,
                  const LinearState& from, const LinearOptions& options) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lagwise::_linear_attention", "")
                             .typed<decltype(forward_op<forward_cpu>)>();
  return op.call(q, k, v, optional(from.s), optional(from.z), optional(options.decay),
                 optional(options.q_norm), optional(options.k_norm), options.causal,
                 options.feature_map, options.denominator, options.eps,
                 options.eps_mode);
}

// ---- _linear_attention_backward: dq, dk, dv, ds, dz, d_decay, dq_norm, dk_norm

std::vector<Tensor> backward_cpu(const LinearCall& call, const LinearForward& saved,
                                 const LinearCotangents& cotangents) {
  const auto g = linear_backward_cpu(call, saved, cotangents);
  return {g.q, g.k, g.v, g.s, g.z, g.decay, g.q_norm, g.k_norm};
}

std::vector<Tensor> backward_meta(const LinearCall& call, const LinearForward& saved,
                                  const LinearCotangents&) {
  const auto like = [](const Tensor& x) {
    return x.defined() ? at::empty(x.sizes(), x.options()) : x;
  };
  return {like(call.q),  like(call.k),     like(call.v),      like(saved.s),
          like(saved.z), like(call.decay), like(call.q_norm), like(call.k_norm)};
}

template <std::vector<Tensor> (*compute)(const LinearCall&, const LinearForward&,
                                         const LinearCotangents&)>
std::vector<Tensor> backward_op(const Optional& d_out, const Optional& d_s,
                                const Optional& d_z, bool decay_wanted,
                                const Tensor& out, const Tensor& s1, const Tensor& z1,
                                const Tensor& den, const Tensor& q, const Tensor& k,
                                const Tensor& v, const Optional& s, const Optional& z,
                                const Optional& decay, const Optional& q_norm,
                                const Optional& k_norm, bool causal,
                                c10::string_view map, c10::string_view denominator,
                                double eps, c10::string_view eps_mode) {
  const LinearState from{value_or_undefined(s), value_or_undefined(z)};
  const auto call = check_linear(
      kOp, q, k, v, from,
      options_of(decay, q_norm, k_norm, causal, map, denominator, eps, eps_mode));
  auto gradients = compute(call, {out, s1, z1, den},
                           {value_or_undefined(d_out), value_or_undefined(d_s),
                            value_or_undefined(d_z), decay_wanted});
  // The dispatcher returns no undefined tensors: absent inputs give empty ones.
  for (auto& gradient : gradients)
    if (!gradient.defined()) gradient = at::empty({0}, q.options());
  return gradients;
}

std::vector<Tensor> call_backward(const LinearCotangents& cotangents,
                                  const LinearForward& saved, const Tensor& q,
                                  const Tensor& k, const Tensor& v,
                                  const LinearState& from,
                                  const LinearOptions& options) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("lagwise::_linear_attention_backward", "")
          .typed<decltype(backward_op<backward_cpu>)>();
  return op.call(optional(cotangents.out), optional(cotangents.s),
                 optional(cotangents.z), cotangents.decay, saved.out, saved.s, saved.z,
                 saved.den, q, k, v, optional(from.s), optional(from.z),
                 optional(options.decay), optional(options.q_norm),
                 optional(options.k_norm), options.causal, options.feature_map,
                 options.denominator, options.eps, options.eps_mode);
}

// ---- autograd

struct LinearAttention : torch::autograd::Function<LinearAttention> {
  static variable_list forward(AutogradContext* ctx, const Tensor& q, const Tensor& k,
                               const Tensor& v, const Optional& s, const Optional& z,
                               const Optional& decay, const Optional& /*q_norm*/,
                               const Optional& /*k_norm*/,
                               const LinearOptions& options) {
    const LinearState from{value_or_undefined(s), value_or_undefined(z)};
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [out, s1, z1, den] = call_forward(q, k, v, from, options);
    ctx->save_for_backward({q, k, v, from.s, from.z, options.decay, options.q_norm,
                            options.k_norm, out, s1, z1, den});
    ctx->set_materialize_grads(false);
    ctx->saved_data["causal"] = options.causal;
    ctx->saved_data["feature_map"] = options.feature_map;
    ctx->saved_data["denominator"] = options.denominator;
    ctx->saved_data["eps"] = options.eps;
    ctx->saved_data["eps_mode"] = options.eps_mode;
    ctx->saved_data["decay_wanted"] = decay.has_value() && decay->requires_grad();
    ctx->mark_non_differentiable({den});
    return {out, s1, z1, den};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto x = ctx->get_saved_variables();
    LinearOptions options;
    options.causal = ctx->saved_data["causal"].toBool();
    options.feature_map = ctx->saved_data["feature_map"].toStringRef();
    options.denominator = ctx->saved_data["denominator"].toStringRef();
    options.eps = ctx->saved_data["eps"].toDouble();
    options.eps_mode = ctx->saved_data["eps_mode"].toStringRef();
    options.decay = x[5], options.q_norm = x[6], options.k_norm = x[7];
    const LinearCotangents cotangents{grads[0], grads[1], grads[2],
                                      ctx->saved_data["decay_wanted"].toBool()};
    variable_list gradients;
    {
      at::AutoGradMode off(false);
      gradients = call_backward(cotangents, {x[8], x[9], x[10], x[11]}, x[0], x[1],
                                x[2], {x[3], x[4]}, options);
    }
    for (size_t i = 3; i < 8; ++i)
      if (!x[i].defined()) gradients[i] = Tensor();
    if (!cotangents.decay) gradients[5] = Tensor();
    variable_list inputs(x.begin(), x.begin() + 8);
    inputs.insert(inputs.end(), grads.begin(), grads.end());
    gradients = once_differentiable(kOp, inputs, std::move(gradients));
    gradients.emplace_back();  // of the options
    return gradients;
  }
};

Four forward_autograd(const Tensor& q, const Tensor& k, const Tensor& v,
                      const Optional& s, const Optional& z, const Optional& decay,
                      const Optional& q_norm, const Optional& k_norm, bool causal,
                      c10::string_view map, c10::string_view denominator, double eps,
                      c10::string_view eps_mode) {
  const auto r = LinearAttention::apply(
      q, k, v, s, z, decay, q_norm, k_norm,
      options_of(decay, q_norm, k_norm, causal, map, denominator, eps, eps_mode));
  return {r[0], r[1], r[2], r[3]};
}

// ---- the public operators

void refuse_mask(const Optional& attn_mask) {
  TORCH_CHECK(
      !attn_mask.has_value(), kOp, ": expected no attn_mask, got one of ",
      attn_mask->sizes(),
      "; linear attention never forms the N x M scores a mask would act on: use "
      "causal=True");
}

Tensor linear_attention_op(const Tensor& q, const Tensor& k, const Tensor& v,
                           bool causal, c10::string_view map, const Optional& decay,
                           c10::string_view denominator, const Optional& q_norm,
                           const Optional& k_norm, double eps,
                           c10::string_view eps_mode, const Optional& attn_mask) {
  refuse_mask(attn_mask);
  return linear_attention(
      q, k, v,
      options_of(decay, q_norm, k_norm, causal, map, denominator, eps, eps_mode));
}

std::tuple<Tensor, Tensor, Tensor> linear_attention_stateful_op(
    const Tensor& q, const Tensor& k, const Tensor& v, const Optional& s,
    const Optional& z, bool causal, c10::string_view map, const Optional& decay,
    c10::string_view denominator, const Optional& q_norm, const Optional& k_norm,
    double eps, c10::string_view eps_mode, const Optional& attn_mask) {
  refuse_mask(attn_mask);
  auto r = linear_attention_stateful(
      q, k, v, {value_or_undefined(s), value_or_undefined(z)},
      options_of(decay, q_norm, k_norm, causal, map, denominator, eps, eps_mode));
  return {r.out, r.state.s, r.state.z};
}

}  // namespace

LinearResult linear_attention_stateful(const Tensor& q, const Tensor& k,
                                       const Tensor& v, const LinearState& from,
                                       const LinearOptions& options) {
  auto [out, s, z, den] = call_forward(q, k, v, from, options);
  return {out, {s, z}};
}

Tensor linear_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                        const LinearOptions& options) {
  return linear_attention_stateful(q, k, v, {}, options).out;
}

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  m.def(
      "linear_attention(Tensor q, Tensor k, Tensor v, *, bool causal=False, "
      "str feature_map=\"none\", Tensor? decay=None, str denominator=\"same\", "
      "Tensor? q_norm=None, Tensor? k_norm=None, float eps=1e-6, "
      "str eps_mode=\"add\", Tensor? attn_mask=None) -> Tensor",
      linear_attention_op);
  m.def(
      "linear_attention_stateful(Tensor q, Tensor k, Tensor v, Tensor? s=None, "
      "Tensor? z=None, *, bool causal=False, str feature_map=\"none\", "
      "Tensor? decay=None, str denominator=\"same\", Tensor? q_norm=None, "
      "Tensor? k_norm=None, float eps=1e-6, str eps_mode=\"add\", "
      "Tensor? attn_mask=None) -> (Tensor out, Tensor s, Tensor z)",
      linear_attention_stateful_op);
  m.def(
      "_linear_attention(Tensor q, Tensor k, Tensor v, Tensor? s, Tensor? z, "
      "Tensor? decay, Tensor? q_norm, Tensor? k_norm, bool causal, str feature_map, "
      "str denominator, float eps, str eps_mode) "
      "-> (Tensor out, Tensor s, Tensor z, Tensor den)");
  m.def(
      "_linear_attention_backward(Tensor? d_out, Tensor? d_s, Tensor? d_z, "
      "bool decay_wanted, Tensor out, Tensor s1, Tensor z1, Tensor den, Tensor q, "
      "Tensor k, Tensor v, Tensor? s, Tensor? z, Tensor? decay, Tensor? q_norm, "
      "Tensor? k_norm, bool causal, str feature_map, str denominator, float eps, "
      "str eps_mode) -> Tensor[]");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("_linear_attention", forward_op<forward_cpu>);
  m.impl("_linear_attention_backward", backward_op<backward_cpu>);
}
TORCH_LIBRARY_IMPL(lagwise, Meta, m) {
  m.impl("_linear_attention", forward_op<forward_meta>);
  m.impl("_linear_attention_backward", backward_op<backward_meta>);
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("_linear_attention", forward_autograd);
}

}  // namespace lagwise::ops
