#include "lagwise/ops/linear_attention.h"

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <type_traits>

#include "lagwise/ops/feature_map.h"
#include "lagwise/ops/linear/linear_cpu.h"
#include "lagwise/ops/torch/differentiable_pair.h"
#include "lagwise/ops/torch/expect.h"
#include "lagwise/ops/torch/rows_first.h"

// The operators, in this order: what a call takes, the private pair that computes (CPU,
// Meta, Autograd), the public ones on top of it, registration.

namespace lagwise::ops {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

constexpr const char* kOp = "linear_attention";

/// What a call takes, in the order of the schema kSchema.
struct LinearArguments {
  Tensor q, k, v;
  LinearState from;
  LinearOptions options;
};

template <class Visit>
void each_argument(LinearArguments& x, const Visit& visit) {
  visit(x.q), visit(x.k), visit(x.v);
  visit(x.from.s), visit(x.from.z), visit(x.from.m);
  visit(x.options.causal), visit(x.options.feature_map), visit(x.options.decay);
  visit(x.options.denominator), visit(x.options.q_norm), visit(x.options.k_norm);
  visit(x.options.eps), visit(x.options.eps_mode), visit(x.options.log_scale);
  visit(x.options.lengths), visit(x.options.key_lengths);
  visit(x.options.cu_seqlens), visit(x.options.key_cu_seqlens);
  visit(x.options.log_decay), visit(x.options.write_strength);
}

const std::string kOptions =
    "bool causal=False, str feature_map=\"none\", Tensor? decay=None, "
    "str denominator=\"same\", Tensor? q_norm=None, Tensor? k_norm=None, "
    "float eps=1e-6, str eps_mode=\"add\", Tensor? log_scale=None, "
    "Tensor? lengths=None, Tensor? key_lengths=None, Tensor? cu_seqlens=None, "
    "Tensor? key_cu_seqlens=None, Tensor? log_decay=None, "
    "Tensor? write_strength=None";
const std::string kSchema =
    "Tensor q, Tensor k, Tensor v, Tensor? s=None, Tensor? z=None, Tensor? m=None, "
    "*, " +
    kOptions;

LinearCall check(const LinearArguments& x) {
  return check_linear(kOp, x.q, x.k, x.v, x.from, x.options);
}

// ---- _linear_attention: out, s, z, den, max

LinearForward forward_meta(const LinearCall& call) {
  const auto make = [&](at::IntArrayRef sizes) {
    return at::empty(sizes, call.q.options());
  };
  const int64_t states = call.states();
  const int64_t dens = call.divide == LinearCall::Divide::none ? 0 : call.n;
  const Tensor max =
      call.log_scale.defined() ? make({states, call.h}) : make({states, call.h, 0});
  return {empty_in_order({call.b, call.h, call.n, call.e}, call.v),
          make({states, call.h, call.d, call.e}), make({states, call.h, call.f}),
          make({call.b, call.h, dens}), max};
}

template <LinearForward (*compute)(const LinearCall&)>
void forward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  LinearArguments arguments;
  read_arguments(taken.data(), arguments);
  const LinearForward r = compute(check(arguments));
  for (const Tensor& x : {r.out, r.s, r.z, r.den, r.max}) stack->emplace_back(x);
}

// ---- _linear_attention_backward: the gradients of kPair.inputs

const DifferentiablePair kPair = {
    kOp,
    "lagwise::_linear_attention",
    "lagwise::_linear_attention_backward",
    // q, k, v, s, z, decay, q_norm, k_norm, log_scale, log_decay, write_strength
    {0, 1, 2, 3, 4, 8, 10, 11, 14, 19, 20},
    5,
    3,
    5,
    {0, 1, 2, 10, 11}};                                // q, k, v, q_norm, k_norm
constexpr size_t kDecayInput = 5, kLogDecayInput = 9;  // places in that list

LinearGradients backward_meta(const LinearCall& call, const LinearForward& saved,
                              const LinearCotangents&) {
  const auto like = [](const Tensor& x) { return x.defined() ? empty_in_order(x) : x; };
  return {like(call.q),
          like(call.k),
          like(call.v),
          like(call.q_norm),
          like(call.k_norm),
          like(call.decay),
          like(saved.s),
          like(saved.z),
          like(call.log_scale),
          like(call.log_decay),
          like(call.write_strength)};
}

/// What a backward pass is given beside the arguments: anyone may call the operator.
void check_results(const LinearCall& call, const LinearForward& saved,
                   const LinearCotangents& cotangents) {
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
  expect("d_out", "[B, H, N, E]", cotangents.out, out);
  expect("d_s", "[B, H, D, E]", cotangents.s, s);
  expect("d_z", "[B, H, F]", cotangents.z, z);
}

template <LinearGradients (*compute)(const LinearCall&, const LinearForward&,
                                     const LinearCotangents&)>
void backward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  LinearCotangents cotangents;
  LinearForward saved;
  const c10::IValue* at = taken.data();
  for (Tensor* x : {&cotangents.out, &cotangents.s, &cotangents.z}) read(*at++, *x);
  const auto wanted = (at++)->toBoolList();
  TORCH_CHECK(wanted.size() == kPair.inputs.size(), kOp, ": expected wanted of ",
              kPair.inputs.size(), ", got ", wanted.size());
  cotangents.decay = wanted.get(kDecayInput);
  cotangents.log_decay = wanted.get(kLogDecayInput);
  for (Tensor* x : {&saved.out, &saved.s, &saved.z, &saved.den, &saved.max})
    read(*at++, *x);
  LinearArguments arguments;
  read_arguments(at, arguments);
  const LinearCall call = check(arguments);
  check_results(call, saved, cotangents);
  const LinearGradients g = compute(call, saved, cotangents);
  Tensors gradients = {g.q,
                       g.k,
                       g.v,
                       g.s,
                       g.z,
                       g.decay,
                       g.q_norm,
                       g.k_norm,
                       g.log_scale,
                       g.log_decay,
                       g.write_strength};
  for (Tensor& x : gradients)
    if (!x.defined()) x = at::empty({0}, call.q.options());
  stack->emplace_back(std::move(gradients));
}

/// Under torch's key Autograd, above both.
void forward_autograd(const c10::OperatorHandle& op, Stack* stack) {
  LinearArguments x;
  read_arguments(&*(stack->end() - op.schema().arguments().size()), x);
  TORCH_CHECK(!x.options.log_scale.defined() || !x.options.decay.defined() ||
                  !x.options.decay.requires_grad(),
              kOp,
              ": expected a decay that needs no gradient with log_scale, got one that "
              "does");
  differentiate<kPair>(op, stack);
}

// ---- the public operators

void refuse_mask(const c10::IValue& attn_mask) {
  TORCH_CHECK(
      attn_mask.isNone(), kOp, ": expected no attn_mask, got one of ",
      attn_mask.toTensor().sizes(),
      "; linear attention never forms the N x M scores a mask would act on: use "
      "causal=True, lengths= for padding or cu_seqlens= for packed sequences");
}

void stateful_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  refuse_mask(taken.back());
  LinearArguments x;
  read_arguments(taken.data(), x);
  const LinearResult r = linear_attention_stateful(x.q, x.k, x.v, x.from, x.options);
  for (const Tensor& y : {r.out, r.state.s, r.state.z, r.state.m})
    stack->emplace_back(y);
}

void stateless_op(const c10::OperatorHandle& op, Stack* stack) {
  Stack taken = take_arguments(op, *stack);
  refuse_mask(taken.back());
  taken.insert(taken.begin() + 3, 3, c10::IValue());  // no state: s, z, m
  LinearArguments x;
  read_arguments(taken.data(), x);
  stack->emplace_back(linear_attention(x.q, x.k, x.v, x.options));
}

/// With gates or writing strengths the private pair takes features as they are: their
/// gradients there need phi(q) . dphi(q), which a slope of 0 would hide.
LinearArguments with_features(LinearArguments x) {
  LinearOptions& o = x.options;
  if (!o.log_decay.defined() && !o.write_strength.defined()) return x;
  for (Tensor* one : {&x.q, &x.k, &o.q_norm, &o.k_norm})
    if (one->defined() && o.feature_map != "none")
      *one = feature_map(*one, o.feature_map);
  o.feature_map = "none";
  return x;
}

}  // namespace

LinearResult linear_attention_stateful(const Tensor& q, const Tensor& k,
                                       const Tensor& v, const LinearState& from,
                                       const LinearOptions& options) {
  Stack stack;
  const bool stored_short = q.scalar_type() == at::kBFloat16;
  LinearArguments given{q, k, v, from, options};
  each_argument(given, [&](auto& x) {
    if constexpr (std::is_same_v<decltype(x), Tensor&>)
      if (stored_short && x.defined() && x.scalar_type() == at::kBFloat16)
        x = x.to(at::kFloat);
  });
  write_arguments(with_features(given), stack);
  call_forward<kPair>(stack);
  const Tensor out = stack[0].toTensor();
  return {stored_short ? out.to(at::kBFloat16) : out,
          {stack[1].toTensor(), stack[2].toTensor(), stack[4].toTensor()}};
}

Tensor linear_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                        const LinearOptions& options) {
  return linear_attention_stateful(q, k, v, {}, options).out;
}

using torch::CppFunction;

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  m.def(("linear_attention(Tensor q, Tensor k, Tensor v, *, " + kOptions +
         ", Tensor? attn_mask=None) -> Tensor")
            .c_str(),
        CppFunction::makeFromBoxedFunction<stateless_op>());
  m.def(("linear_attention_stateful(" + kSchema +
         ", Tensor? attn_mask=None) -> (Tensor out, Tensor s, Tensor z, Tensor m)")
            .c_str(),
        CppFunction::makeFromBoxedFunction<stateful_op>());
  m.def(("_linear_attention(" + kSchema +
         ") -> (Tensor out, Tensor s, Tensor z, Tensor den, Tensor max)")
            .c_str());
  m.def(("_linear_attention_backward(Tensor? d_out, Tensor? d_s, Tensor? d_z, "
         "bool[] wanted, Tensor out, Tensor s1, Tensor z1, Tensor den, Tensor max, " +
         kSchema + ") -> Tensor[]")
            .c_str());
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("_linear_attention",
         CppFunction::makeFromBoxedFunction<forward_op<linear_forward_cpu>>());
  m.impl("_linear_attention_backward",
         CppFunction::makeFromBoxedFunction<backward_op<linear_backward_cpu>>());
}
TORCH_LIBRARY_IMPL(lagwise, Meta, m) {
  m.impl("_linear_attention",
         CppFunction::makeFromBoxedFunction<forward_op<forward_meta>>());
  m.impl("_linear_attention_backward",
         CppFunction::makeFromBoxedFunction<backward_op<backward_meta>>());
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("_linear_attention", CppFunction::makeFromBoxedFunction<forward_autograd>());
}

}  // namespace lagwise::ops
