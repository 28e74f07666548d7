#include "lagwise/ops/linear_attention.h"

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <type_traits>

#include "lagwise/ops/feature_map.h"
#include "lagwise/ops/linear/linear_cpu.h"
#include "lagwise/ops/torch/define.h"
#include "lagwise/ops/torch/differentiable_pair.h"
#include "lagwise/ops/torch/expect.h"

// The operators, in this order: what a call takes, the private pair that computes (CPU,
// Autograd), the public ones on top of it, registration.

namespace lagwise::ops {
namespace {

using at::Tensor;

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
  visit(x.options.starts), visit(x.options.key_starts);
}

const std::string kOptions =
    "bool causal=False, str feature_map=\"none\", Tensor? decay=None, "
    "str denominator=\"same\", Tensor? q_norm=None, Tensor? k_norm=None, "
    "float eps=1e-6, str eps_mode=\"add\", Tensor? log_scale=None, "
    "Tensor? lengths=None, Tensor? key_lengths=None, Tensor? cu_seqlens=None, "
    "Tensor? key_cu_seqlens=None, Tensor? log_decay=None, "
    "Tensor? write_strength=None, Tensor? starts=None, Tensor? key_starts=None";
const std::string kSchema =
    "Tensor q, Tensor k, Tensor v, Tensor? s=None, Tensor? z=None, Tensor? m=None, "
    "*, " +
    kOptions;

LinearCall check(const LinearArguments& x) {
  return check_linear(kOp, x.q, x.k, x.v, x.from, x.options);
}

// ---- _linear_attention: out, s, z, den, max

void forward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  LinearArguments arguments;
  read_arguments(taken.data(), arguments);
  const LinearForward r = linear_forward_cpu(check(arguments));
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
  const LinearGradients g = linear_backward_cpu(call, saved, cotangents);
  struct Gradient {
    const Tensor &input, &gradient;
  };
  size_t place = 0;
  for (const Gradient& x : {Gradient{call.q, g.q},
                            {call.k, g.k},
                            {call.v, g.v},
                            {call.s, g.s},
                            {call.z, g.z},
                            {call.decay, g.decay},
                            {call.q_norm, g.q_norm},
                            {call.k_norm, g.k_norm},
                            {call.log_scale, g.log_scale},
                            {call.log_decay, g.log_decay},
                            {call.write_strength, g.write_strength}}) {
    if (!wanted.get(place++) || !x.input.defined())
      stack->emplace_back(at::empty({0}, call.q.options()));
    else  // rows lie as theirs do, everything else is dense
      stack->emplace_back(x.input.dim() == 4 ? x.gradient : x.gradient.contiguous());
  }
}

/// Under torch's key Autograd, above both.
void forward_autograd(const c10::OperatorHandle& op, Stack* stack) {
  LinearArguments x;
  read_call(op, *stack, x);
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
  define(m,
         "linear_attention(Tensor q, Tensor k, Tensor v, *, " + kOptions +
             ", Tensor? attn_mask=None) -> Tensor",
         CppFunction::makeFromBoxedFunction<stateless_op>());
  define(m,
         "linear_attention_stateful(" + kSchema +
             ", Tensor? attn_mask=None) -> (Tensor out, Tensor s, Tensor z, Tensor m)",
         CppFunction::makeFromBoxedFunction<stateful_op>());
  define(m, "_linear_attention(" + kSchema +
                ") -> (Tensor out, Tensor s, Tensor z, Tensor den, Tensor max)");
  define(m,
         "_linear_attention_backward(Tensor? d_out, Tensor? d_s, Tensor? d_z, "
         "bool[] wanted, Tensor out, Tensor s1, Tensor z1, Tensor den, Tensor max, " +
             kSchema +
             ") -> (Tensor q, Tensor k, Tensor v, Tensor s, Tensor z, Tensor decay, "
             "Tensor q_norm, Tensor k_norm, Tensor log_scale, Tensor log_decay, "
             "Tensor write_strength)");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("_linear_attention", CppFunction::makeFromBoxedFunction<forward_op>());
  m.impl("_linear_attention_backward",
         CppFunction::makeFromBoxedFunction<backward_op>());
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("_linear_attention", CppFunction::makeFromBoxedFunction<forward_autograd>());
  m.impl("_linear_attention_backward",
         CppFunction::makeFromBoxedFunction<refuse_second<kPair>>());
}

}  // namespace lagwise::ops
