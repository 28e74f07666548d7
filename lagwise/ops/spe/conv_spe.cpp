#include "lagwise/ops/conv_spe.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <string>
#include <vector>

#include "lagwise/ops/spe/conv_spe_call.h"
#include "lagwise/ops/torch/define.h"
#include "lagwise/ops/torch/differentiable_pair.h"
#include "lagwise/ops/torch/expect.h"

// In this order: what a call takes, the operator and its gradient (CPU, Autograd),
// the public function, registration.

namespace lagwise::ops {
namespace {

using at::Tensor;
using Two = std::tuple<Tensor, Tensor>;

constexpr const char* kOp = "conv_spe";
const std::string kSchema =
    "Tensor q, Tensor k, Tensor query_kernel, Tensor key_kernel, Tensor? z=None, *, "
    "SymInt realizations=64, str noise=\"gaussian\", SymInt[] grid=[], "
    "SymInt query_start=0, SymInt key_start=0, SymInt z_start=0, SymInt seed=0, "
    "SymInt step=0, SymInt micro_step=0, str method=\"auto\"";
const DifferentiablePair kPair = {kOp,
                                  "lagwise::conv_spe",
                                  "lagwise::_conv_spe_backward",
                                  {0, 1, 2, 3},  // q, k, query_kernel, key_kernel
                                  2,
                                  2,
                                  0,
                                  {0, 1}};

/// What a call takes, in the order of kSchema.
struct ConvArguments {
  Tensor q, k, query_kernel, key_kernel;
  ConvSpeOptions options;
};

template <class Visit>
void each_argument(ConvArguments& x, const Visit& visit) {
  ConvSpeOptions& o = x.options;
  visit(x.q), visit(x.k), visit(x.query_kernel), visit(x.key_kernel);
  visit(o.z), visit(o.realizations), visit(o.noise), visit(o.grid);
  visit(o.query_start), visit(o.key_start), visit(o.z_start);
  visit(o.draw.seed), visit(o.draw.step), visit(o.draw.micro_step), visit(o.method);
}

ConvSpeCall check(const ConvArguments& x) {
  return check_conv_spe(x.q, x.k, x.query_kernel, x.key_kernel, x.options);
}

std::vector<int64_t> output_sizes(const ConvSpeCall& call, const Tensor& x) {
  return {call.b, call.h, x.size(2), call.r};
}

// ---- conv_spe: q', k'

void forward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  ConvArguments arguments;
  read_arguments(taken.data(), arguments);
  const auto [q_out, k_out] = conv_spe_cpu(check(arguments));
  stack->emplace_back(q_out);
  stack->emplace_back(k_out);
}

// ---- _conv_spe_backward: the gradients of kPair.inputs

void backward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  ConvArguments arguments;
  read_arguments(&taken[3], arguments);  // after d_q, d_k, wanted
  const ConvSpeCall call = check(arguments);
  const auto gradient = [&](const c10::IValue& given, const char* name,
                            const char* shape, const Tensor& x) {
    if (given.isNone()) return at::zeros(output_sizes(call, x), x.options());
    expect_tensor(kOp, name, shape, given.toTensor(), output_sizes(call, x), call.q);
    return given.toTensor();
  };
  for (const Tensor& x :
       conv_spe_backward_cpu(call, gradient(taken[0], "d_q", "[B, H, N, R]", call.q),
                             gradient(taken[1], "d_k", "[B, H, M, R]", call.k)))
    stack->emplace_back(x);
}

}  // namespace

Two conv_spe(const Tensor& q, const Tensor& k, const Tensor& query_kernel,
             const Tensor& key_kernel, const ConvSpeOptions& options) {
  Stack stack;
  write_arguments(ConvArguments{q, k, query_kernel, key_kernel, options}, stack);
  call_forward<kPair>(stack);
  return {stack[0].toTensor(), stack[1].toTensor()};
}

using torch::CppFunction;

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  define(m, "conv_spe(" + kSchema + ") -> (Tensor q, Tensor k)");
  define(m, "_conv_spe_backward(Tensor? d_q, Tensor? d_k, bool[] wanted, " + kSchema +
                ") -> (Tensor q, Tensor k, Tensor query_kernel, Tensor key_kernel)");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("conv_spe", CppFunction::makeFromBoxedFunction<forward_op>());
  m.impl("_conv_spe_backward", CppFunction::makeFromBoxedFunction<backward_op>());
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("conv_spe", CppFunction::makeFromBoxedFunction<differentiate<kPair>>());
  m.impl("_conv_spe_backward",
         CppFunction::makeFromBoxedFunction<refuse_second<kPair>>());
}

}  // namespace lagwise::ops
