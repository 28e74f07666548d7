#include "lagwise/ops/linear_attention.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <tuple>

#include "lagwise/ops/expect.h"
#include "lagwise/ops/linear_cpu.h"
#include "lagwise/ops/once_differentiable.h"
#include "lagwise/ops/optional_tensors.h"

// The operators, in this order: the private pair that computes (CPU, Meta,
// Autograd), the public ones on top of it, registration.

namespace lagwise::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Optional = c10::optional<Tensor>;
using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

constexpr const char* kOp = "linear_attention";

/// Every tensor a call takes. Inside this file they travel as one list, in this order;
/// those from kFirstFixed on have no gradient.
enum Input : size_t {
  kQ,
  kK,
  kV,
  kS,
  kZ,
  kDecay,
  kQNorm,
  kKNorm,
  kLogScale,
  kFirstFixed,
  kMax = kFirstFixed,
  kLengths,
  kKeyLengths,
  kCuts,
  kKeyCuts,
  kInputs
};

/// The choices of a call that are not tensors.
struct Choices {
  bool causal;
  std::string feature_map, denominator;
  double eps;
  std::string eps_mode;
};

variable_list list_inputs(const Tensor& q, const Tensor& k, const Tensor& v,
                          const LinearState& from, const LinearOptions& options) {
  variable_list x(kInputs);
  x[kQ] = q, x[kK] = k, x[kV] = v;
  x[kS] = from.s, x[kZ] = from.z, x[kMax] = from.m;
  x[kDecay] = options.decay, x[kLogScale] = options.log_scale;
  x[kQNorm] = options.q_norm, x[kKNorm] = options.k_norm;
  x[kLengths] = options.lengths, x[kKeyLengths] = options.key_lengths;
  x[kCuts] = options.cu_seqlens, x[kKeyCuts] = options.key_cu_seqlens;
  return x;
}

LinearCall check_inputs(const variable_list& x, const Choices& choices) {
  LinearOptions options;
  options.causal = choices.causal;
  options.feature_map = choices.feature_map;
  options.denominator = choices.denominator;
  options.eps = choices.eps;
  options.eps_mode = choices.eps_mode;
  options.decay = x[kDecay], options.log_scale = x[kLogScale];
  options.q_norm = x[kQNorm], options.k_norm = x[kKNorm];
  options.lengths = x[kLengths], options.key_lengths = x[kKeyLengths];
  options.cu_seqlens = x[kCuts], options.key_cu_seqlens = x[kKeyCuts];
  return check_linear(kOp, x[kQ], x[kK], x[kV], {x[kS], x[kZ], x[kMax]}, options);
}

// ---- _linear_attention: out, s, z, den, max

Five forward_cpu(const LinearCall& call) {
  const LinearForward r = linear_forward_cpu(call);
  return {r.out, r.s, r.z, r.den, r.max};
}

Five forward_meta(const LinearCall& call) {
  const auto make = [&](at::IntArrayRef sizes) {
    return at::empty(sizes, call.q.options());
  };
  const int64_t states = call.states();
  const int64_t dens = call.divide == LinearCall::Divide::none ? 0 : call.n;
  const Tensor max =
      call.log_scale.defined() ? make({states, call.h}) : make({states, call.h, 0});
  return {make({call.b, call.h, call.n, call.e}),
          make({states, call.h, call.d, call.e}), make({states, call.h, call.f}),
          make({call.b, call.h, dens}), max};
}

template <Five (*compute)(const LinearCall&)>
Five forward_op(const Optionals& x, bool causal, c10::string_view map,
                c10::string_view denominator, double eps, c10::string_view eps_mode) {
  return compute(check_inputs(unpack(kOp, x, kInputs, kV + 1),
                              {causal, std::string(map), std::string(denominator), eps,
                               std::string(eps_mode)}));
}

Five call_forward(const variable_list& x, const Choices& choices) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lagwise::_linear_attention", "")
                             .typed<decltype(forward_op<forward_cpu>)>();
  return op.call(pack(x), choices.causal, choices.feature_map, choices.denominator,
                 choices.eps, choices.eps_mode);
}

// ---- _linear_attention_backward: the gradients of the inputs up to kFirstFixed

std::vector<Tensor> backward_cpu(const LinearCall& call, const LinearForward& saved,
                                 const LinearCotangents& cotangents) {
  const auto g = linear_backward_cpu(call, saved, cotangents);
  return {g.q, g.k, g.v, g.s, g.z, g.decay, g.q_norm, g.k_norm, g.log_scale};
}

std::vector<Tensor> backward_meta(const LinearCall& call, const LinearForward& saved,
                                  const LinearCotangents&) {
  const auto like = [](const Tensor& x) {
    return x.defined() ? at::empty(x.sizes(), x.options()) : x;
  };
  return {like(call.q),      like(call.k),      like(call.v),
          like(saved.s),     like(saved.z),     like(call.decay),
          like(call.q_norm), like(call.k_norm), like(call.log_scale)};
}

/// What a backward pass is given beside the inputs: anyone may call the operator.
void check_results(const LinearCall& call, const LinearForward& saved,
                   const variable_list& cotangents) {
  const int64_t states = call.states();
  const int64_t dens = call.divide == LinearCall::Divide::none ? 0 : call.n;
  const std::vector<int64_t> out = {call.b, call.h, call.n, call.e};
  const std::vector<int64_t> s = {states, call.h, call.d, call.e};
  const std::vector<int64_t> z = {states, call.h, call.f};
  const auto expect = [&](const char* name, const char* shape, const Tensor& x,
                          at::IntArrayRef sizes) {
    if (x.defined()) expect_tensor(kOp, name, shape, x, sizes, call.q);
  };
  expect("out", "[B, H, N, E]", saved.out, out);
  expect("s1", "[B, H, D, E]", saved.s, s);
  expect("z1", "[B, H, F]", saved.z, z);
  expect("den", "[B, H, N or 0]", saved.den, {call.b, call.h, dens});
  expect("d_out", "[B, H, N, E]", cotangents[0], out);
  expect("d_s", "[B, H, D, E]", cotangents[1], s);
  expect("d_z", "[B, H, F]", cotangents[2], z);
}

template <std::vector<Tensor> (*compute)(const LinearCall&, const LinearForward&,
                                         const LinearCotangents&)>
std::vector<Tensor> backward_op(const Optionals& d, bool decay_wanted,
                                const Tensor& out, const Tensor& s1, const Tensor& z1,
                                const Tensor& den, const Optionals& x, bool causal,
                                c10::string_view map, c10::string_view denominator,
                                double eps, c10::string_view eps_mode) {
  const variable_list inputs = unpack(kOp, x, kInputs, kV + 1);
  const variable_list cotangents = unpack(kOp, d, 3, 0);
  const auto call = check_inputs(
      inputs,
      {causal, std::string(map), std::string(denominator), eps, std::string(eps_mode)});
  check_results(call, {out, s1, z1, den}, cotangents);
  auto gradients = compute(call, {out, s1, z1, den},
                           {cotangents[0], cotangents[1], cotangents[2], decay_wanted});
  // The dispatcher returns no undefined tensors: absent inputs give empty ones.
  for (auto& gradient : gradients)
    if (!gradient.defined()) gradient = at::empty({0}, call.q.options());
  return gradients;
}

std::vector<Tensor> call_backward(const variable_list& cotangents, bool decay_wanted,
                                  const LinearForward& saved, const variable_list& x,
                                  const Choices& choices) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("lagwise::_linear_attention_backward", "")
          .typed<decltype(backward_op<backward_cpu>)>();
  return op.call(pack(cotangents), decay_wanted, saved.out, saved.s, saved.z, saved.den,
                 pack(x), choices.causal, choices.feature_map, choices.denominator,
                 choices.eps, choices.eps_mode);
}

// ---- autograd

struct LinearAttention : torch::autograd::Function<LinearAttention> {
  /// `given`: the inputs that there are; `which`: their places in the whole list.
  static variable_list forward(AutogradContext* ctx, at::TensorList given,
                               const std::vector<int64_t>& which,
                               const Choices& choices) {
    variable_list x(kInputs);
    for (size_t i = 0; i < which.size(); ++i)
      x[static_cast<size_t>(which[i])] = given[i];
    const bool decay_wanted = x[kDecay].defined() && x[kDecay].requires_grad();
    TORCH_CHECK(!decay_wanted || !x[kLogScale].defined(), kOp,
                ": expected a decay that needs no gradient with log_scale, got one "
                "that does");
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [out, s, z, den, max] = call_forward(x, choices);
    variable_list saved = x;
    saved.insert(saved.end(), {out, s, z, den});
    ctx->save_for_backward(saved);
    ctx->set_materialize_grads(false);
    ctx->saved_data["causal"] = choices.causal;
    ctx->saved_data["feature_map"] = choices.feature_map;
    ctx->saved_data["denominator"] = choices.denominator;
    ctx->saved_data["eps"] = choices.eps;
    ctx->saved_data["eps_mode"] = choices.eps_mode;
    ctx->saved_data["decay_wanted"] = decay_wanted;
    ctx->saved_data["which"] = which;
    ctx->mark_non_differentiable({den, max});
    return {out, s, z, den, max};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    auto& data = ctx->saved_data;
    const Choices choices{data["causal"].toBool(), data["feature_map"].toStringRef(),
                          data["denominator"].toStringRef(), data["eps"].toDouble(),
                          data["eps_mode"].toStringRef()};
    const bool decay_wanted = data["decay_wanted"].toBool();
    const variable_list saved = ctx->get_saved_variables();
    const variable_list x(saved.begin(), saved.begin() + kInputs);
    grads.resize(3);  // those of den and max are no gradients
    variable_list gradients;
    {
      at::AutoGradMode off(false);
      const auto* results = saved.data() + kInputs;
      gradients =
          call_backward(grads, decay_wanted,
                        {results[0], results[1], results[2], results[3]}, x, choices);
    }
    if (!decay_wanted) gradients[kDecay] = Tensor();
    gradients.resize(kInputs);
    variable_list wanted;
    for (const int64_t i : data["which"].toIntVector())
      wanted.push_back(gradients[static_cast<size_t>(i)]);
    variable_list depends(x.begin(), x.begin() + kFirstFixed);
    depends.insert(depends.end(), grads.begin(), grads.end());
    wanted = once_differentiable(kOp, depends, std::move(wanted));
    wanted.resize(wanted.size() + 2);  // of `which` and the choices
    return wanted;
  }
};

Five forward_autograd(const Optionals& x, bool causal, c10::string_view map,
                      c10::string_view denominator, double eps,
                      c10::string_view eps_mode) {
  unpack(kOp, x, kInputs, kV + 1);  // checks the list
  variable_list given;
  std::vector<int64_t> which;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!x.get(i).has_value()) continue;
    given.push_back(*x.get(i));
    which.push_back(static_cast<int64_t>(i));
  }
  const auto r =
      LinearAttention::apply(at::TensorList(given), which,
                             Choices{causal, std::string(map), std::string(denominator),
                                     eps, std::string(eps_mode)});
  return {r[0], r[1], r[2], r[3], r[4]};
}

// ---- the public operators

Tensor value_or_undefined(const Optional& x) { return x.value_or(Tensor()); }

void refuse_mask(const Optional& attn_mask) {
  TORCH_CHECK(
      !attn_mask.has_value(), kOp, ": expected no attn_mask, got one of ",
      attn_mask->sizes(),
      "; linear attention never forms the N x M scores a mask would act on: use "
      "causal=True, lengths= for padding or cu_seqlens= for packed sequences");
}

std::tuple<Tensor, Tensor, Tensor, Tensor> linear_attention_stateful_op(
    const Tensor& q, const Tensor& k, const Tensor& v, const Optional& s,
    const Optional& z, const Optional& m, bool causal, c10::string_view map,
    const Optional& decay, c10::string_view denominator, const Optional& q_norm,
    const Optional& k_norm, double eps, c10::string_view eps_mode,
    const Optional& log_scale, const Optional& lengths, const Optional& key_lengths,
    const Optional& cu_seqlens, const Optional& key_cu_seqlens,
    const Optional& attn_mask) {
  refuse_mask(attn_mask);
  LinearOptions options;
  options.causal = causal;
  options.feature_map = std::string(map);
  options.decay = value_or_undefined(decay);
  options.denominator = std::string(denominator);
  options.q_norm = value_or_undefined(q_norm);
  options.k_norm = value_or_undefined(k_norm);
  options.eps = eps;
  options.eps_mode = std::string(eps_mode);
  options.log_scale = value_or_undefined(log_scale);
  options.lengths = value_or_undefined(lengths);
  options.key_lengths = value_or_undefined(key_lengths);
  options.cu_seqlens = value_or_undefined(cu_seqlens);
  options.key_cu_seqlens = value_or_undefined(key_cu_seqlens);
  auto r = linear_attention_stateful(
      q, k, v, {value_or_undefined(s), value_or_undefined(z), value_or_undefined(m)},
      options);
  return {r.out, r.state.s, r.state.z, r.state.m};
}

Tensor linear_attention_op(const Tensor& q, const Tensor& k, const Tensor& v,
                           bool causal, c10::string_view map, const Optional& decay,
                           c10::string_view denominator, const Optional& q_norm,
                           const Optional& k_norm, double eps,
                           c10::string_view eps_mode, const Optional& log_scale,
                           const Optional& lengths, const Optional& key_lengths,
                           const Optional& cu_seqlens, const Optional& key_cu_seqlens,
                           const Optional& attn_mask) {
  return std::get<0>(
      linear_attention_stateful_op(q, k, v, {}, {}, {}, causal, map, decay, denominator,
                                   q_norm, k_norm, eps, eps_mode, log_scale, lengths,
                                   key_lengths, cu_seqlens, key_cu_seqlens, attn_mask));
}

}  // namespace

LinearResult linear_attention_stateful(const Tensor& q, const Tensor& k,
                                       const Tensor& v, const LinearState& from,
                                       const LinearOptions& options) {
  auto x = list_inputs(q, k, v, from, options);
  const bool stored_short = q.scalar_type() == at::kBFloat16;
  if (stored_short)
    for (Tensor& one : x)
      if (one.defined() && one.scalar_type() == at::kBFloat16) one = one.to(at::kFloat);
  auto [out, s, z, den, max] =
      call_forward(x, {options.causal, options.feature_map, options.denominator,
                       options.eps, options.eps_mode});
  return {stored_short ? out.to(at::kBFloat16) : out, {s, z, max}};
}

Tensor linear_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                        const LinearOptions& options) {
  return linear_attention_stateful(q, k, v, {}, options).out;
}

#define LAGWISE_LINEAR_OPTIONS                                                \
  "bool causal=False, str feature_map=\"none\", Tensor? decay=None, "         \
  "str denominator=\"same\", Tensor? q_norm=None, Tensor? k_norm=None, "      \
  "float eps=1e-6, str eps_mode=\"add\", Tensor? log_scale=None, "            \
  "Tensor? lengths=None, Tensor? key_lengths=None, Tensor? cu_seqlens=None, " \
  "Tensor? key_cu_seqlens=None, Tensor? attn_mask=None"
#define LAGWISE_LINEAR_CHOICES \
  "bool causal, str feature_map, str denominator, float eps, str eps_mode"

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  m.def("linear_attention(Tensor q, Tensor k, Tensor v, *, " LAGWISE_LINEAR_OPTIONS
        ") -> Tensor",
        linear_attention_op);
  m.def(
      "linear_attention_stateful(Tensor q, Tensor k, Tensor v, Tensor? s=None, "
      "Tensor? z=None, Tensor? m=None, *, " LAGWISE_LINEAR_OPTIONS
      ") -> (Tensor out, Tensor s, Tensor z, Tensor m)",
      linear_attention_stateful_op);
  m.def("_linear_attention(Tensor?[] inputs, " LAGWISE_LINEAR_CHOICES
        ") -> (Tensor out, Tensor s, Tensor z, Tensor den, Tensor max)");
  m.def(
      "_linear_attention_backward(Tensor?[] cotangents, bool decay_wanted, Tensor out, "
      "Tensor s1, Tensor z1, Tensor den, Tensor?[] inputs, " LAGWISE_LINEAR_CHOICES
      ") -> Tensor[]");
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
