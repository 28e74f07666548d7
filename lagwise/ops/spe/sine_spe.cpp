#include "lagwise/ops/sine_spe.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <string>
#include <vector>

#include "lagwise/ops/spe/sine_spe_cpu.h"
#include "lagwise/ops/torch/define.h"
#include "lagwise/ops/torch/differentiable_pair.h"
#include "lagwise/ops/torch/expect.h"

// In this order: what a call takes, the operator and its gradient (CPU, Autograd),
// the public function, registration.

namespace lagwise::ops {

template <class Visit>
void each_argument(SineArguments& x, const Visit& visit) {
  visit(x.q), visit(x.k);
  visit(x.waves.frequency), visit(x.waves.phase), visit(x.waves.amplitude);
  visit(x.waves.constant);
  visit(x.q_at), visit(x.k_at);
  visit(x.mixing.z), visit(x.mixing.gate), visit(x.mixing.fold);
  visit(x.mixing.width);
}

namespace {

using at::Tensor;

constexpr const char* kOp = "sine_spe";
const std::string kSchema =
    "Tensor q, Tensor k, Tensor frequency, Tensor phase, Tensor amplitude, "
    "Tensor? constant, Tensor q_at, Tensor k_at, Tensor? z, Tensor? gate, "
    "Tensor? fold, SymInt width";
const DifferentiablePair kPair = {
    kOp,
    "lagwise::sine_spe",
    "lagwise::_sine_spe_backward",
    {0, 1, 2, 3, 4, 5},  // q, k, frequency, phase, amplitude, constant
    2,
    2,
    0,
    {0, 1}};

std::vector<int64_t> output_sizes(const SineCall& call, const Tensor& x) {
  return {call.b, call.h, x.size(2), call.width};
}

// ---- sine_spe: q', k'

void forward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  SineArguments arguments;
  read_arguments(taken.data(), arguments);
  const SineCall call = check_sine_spe(kOp, arguments);
  Tensor q_out = at::empty(output_sizes(call, call.q), call.q.options());
  Tensor k_out = at::empty(output_sizes(call, call.k), call.k.options());
  sine_spe_cpu(call, q_out, k_out);
  stack->emplace_back(q_out);
  stack->emplace_back(k_out);
}

// ---- _sine_spe_backward: the gradients of kPair.inputs

void backward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  SineArguments arguments;
  read_arguments(&taken[3], arguments);  // after d_q, d_k, wanted
  const SineCall call = check_sine_spe(kOp, arguments);
  const auto gradient = [&](const c10::IValue& given, const char* name,
                            const char* shape, const Tensor& x) {
    if (given.isNone()) return at::zeros(output_sizes(call, x), x.options());
    expect_tensor(kOp, name, shape, given.toTensor(), output_sizes(call, x), call.q);
    return given.toTensor();
  };
  const Tensor d_q = gradient(taken[0], "d_q", "[B, H, N, R]", call.q);
  const Tensor d_k = gradient(taken[1], "d_k", "[B, H, M, R]", call.k);
  const SineGradientsOf to = sine_spe_backward_cpu(call, d_q, d_k);
  for (const Tensor& x :
       {to.q, to.k, to.frequency, to.phase, to.amplitude, to.constant})
    stack->emplace_back(x.defined() ? x : at::empty({0}, call.frequency.options()));
}

/// Under torch's key Autograd, above both.
void forward_autograd(const c10::OperatorHandle& op, Stack* stack) {
  SineArguments x;
  read_call(op, *stack, x);
  // No gradient would look to a learner like a gradient of zero.
  for (const Tensor& y : {x.mixing.z, x.mixing.gate, x.q_at, x.k_at})
    TORCH_CHECK(!y.defined() || !y.requires_grad(), kOp,
                ": expected noise and positions that need no gradient, got some that "
                "do");
  differentiate<kPair>(op, stack);
}

}  // namespace

std::pair<Tensor, Tensor> sine_spe(const Tensor& q, const Tensor& k,
                                   const SineWaves& waves, const SineMixing& mixing,
                                   const Tensor& q_at, const Tensor& k_at) {
  Stack stack;
  write_arguments(SineArguments{q, k, waves, q_at, k_at, mixing}, stack);
  call_forward<kPair>(stack);
  return {stack[0].toTensor(), stack[1].toTensor()};
}

using torch::CppFunction;

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  define(m, "sine_spe(" + kSchema + ") -> (Tensor q, Tensor k)");
  define(m, "_sine_spe_backward(Tensor? d_q, Tensor? d_k, bool[] wanted, " + kSchema +
                ") -> (Tensor q, Tensor k, Tensor frequency, Tensor phase, "
                "Tensor amplitude, Tensor constant)");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("sine_spe", CppFunction::makeFromBoxedFunction<forward_op>());
  m.impl("_sine_spe_backward", CppFunction::makeFromBoxedFunction<backward_op>());
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("sine_spe", CppFunction::makeFromBoxedFunction<forward_autograd>());
  m.impl("_sine_spe_backward",
         CppFunction::makeFromBoxedFunction<refuse_second<kPair>>());
}

}  // namespace lagwise::ops
