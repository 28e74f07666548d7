#include "lagwise/ops/exact_attention.h"

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "lagwise/ops/exact/exact_call.h"
#include "lagwise/ops/torch/define.h"
#include "lagwise/ops/torch/differentiable_pair.h"
#include "lagwise/ops/torch/expect.h"

// The operators, in this order: what a call takes, the private pair that computes (CPU,
// Autograd), the public one on top of it, registration.

namespace lagwise::ops {
namespace {

using at::Tensor;

constexpr const char* kOp = "exact_attention";

/// What a call takes, in the order of the schema kSchema.
struct ExactArguments {
  Tensor q, k, v;
  ExactOptions options;
};

template <class Visit>
void each_argument(ExactArguments& x, const Visit& visit) {
  visit(x.q), visit(x.k), visit(x.v);
  visit(x.options.causal), visit(x.options.scale);
  visit(x.options.lag_bias), visit(x.options.lag_keys), visit(x.options.lag_values);
  visit(x.options.query_start), visit(x.options.key_start), visit(x.options.window);
  visit(x.options.lengths), visit(x.options.key_lengths);
  visit(x.options.cu_seqlens), visit(x.options.key_cu_seqlens);
  visit(x.options.key_bias), visit(x.options.starts), visit(x.options.key_starts);
}

const std::string kSchema =
    "Tensor q, Tensor k, Tensor v, *, bool causal=False, float? scale=None, "
    "Tensor? lag_bias=None, Tensor? lag_keys=None, Tensor? lag_values=None, "
    "SymInt? query_start=None, SymInt key_start=0, SymInt? window=None, "
    "Tensor? lengths=None, Tensor? key_lengths=None, Tensor? cu_seqlens=None, "
    "Tensor? key_cu_seqlens=None, Tensor? key_bias=None, Tensor? starts=None, "
    "Tensor? key_starts=None";

ExactCall check(const ExactArguments& x) {
  return check_exact(x.q, x.k, x.v, x.options);
}

// ---- _exact_attention: out, stats

void forward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  ExactArguments arguments;
  read_arguments(taken.data(), arguments);
  const ExactForward r = exact_forward_cpu(check(arguments));
  stack->emplace_back(r.out);
  stack->emplace_back(r.stats);
}

// ---- _exact_attention_backward: the gradients of kPair.inputs

const DifferentiablePair kPair = {kOp,
                                  "lagwise::_exact_attention",
                                  "lagwise::_exact_attention_backward",
                                  {0, 1, 2, 5, 6, 7, 15},  // q, k, v, lag_bias,
                                  // lag_keys, lag_values, key_bias
                                  2,
                                  1,
                                  2,
                                  {0, 1, 2}};

void backward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  const c10::IValue* at = taken.data();
  Tensor d_out;
  ExactForward saved;
  read(*at++, d_out);
  const auto wanted = (at++)->toBoolList();
  TORCH_CHECK(wanted.size() == kPair.inputs.size(), kOp, ": expected wanted of ",
              kPair.inputs.size(), ", got ", wanted.size());
  read(*at++, saved.out);
  read(*at++, saved.stats);
  ExactArguments arguments;
  read_arguments(at, arguments);
  const ExactCall call = check(arguments);
  const std::vector<int64_t> rows = {call.b, call.h, call.n, call.e};
  TORCH_CHECK(d_out.defined(), kOp, ": expected d_out, got none");
  expect_tensor(kOp, "d_out", "[B, H, N, E]", d_out, rows, call.q);
  expect_tensor(kOp, "out", "[B, H, N, E]", saved.out, rows, call.q);
  expect_tensor(kOp, "stats", "[B, H, N, 2]", saved.stats, {call.b, call.h, call.n, 2},
                call.q);
  saved = {saved.out.contiguous(), saved.stats.contiguous()};
  const ExactGradient g = exact_backward_cpu(
      call, saved, d_out, {wanted.get(3), wanted.get(4), wanted.get(5), wanted.get(6)});
  for (const Tensor& x :
       {g.q, g.k, g.v, g.lag_bias, g.lag_keys, g.lag_values, g.key_bias})
    stack->emplace_back(x.defined() ? x : at::empty({0}, call.q.options()));
}

/// The arguments are those of the pair; what it keeps for the gradient is left behind.
void exact_attention_op(const c10::OperatorHandle&, Stack* stack) {
  call_forward<kPair>(*stack);
  stack->pop_back();
}

}  // namespace

Tensor exact_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                       const ExactOptions& options) {
  Stack stack;
  write_arguments(ExactArguments{q, k, v, options}, stack);
  call_forward<kPair>(stack);
  return stack[0].toTensor();
}

using torch::CppFunction;

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  define(m, "exact_attention(" + kSchema + ") -> Tensor",
         CppFunction::makeFromBoxedFunction<exact_attention_op>());
  define(m, "_exact_attention(" + kSchema + ") -> (Tensor out, Tensor stats)");
  define(m,
         "_exact_attention_backward(Tensor? d_out, bool[] wanted, Tensor out, "
         "Tensor stats, " +
             kSchema +
             ") -> (Tensor q, Tensor k, Tensor v, Tensor lag_bias, Tensor lag_keys, "
             "Tensor lag_values, Tensor key_bias)");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("_exact_attention", CppFunction::makeFromBoxedFunction<forward_op>());
  m.impl("_exact_attention_backward",
         CppFunction::makeFromBoxedFunction<backward_op>());
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("_exact_attention",
         CppFunction::makeFromBoxedFunction<differentiate<kPair>>());
  m.impl("_exact_attention_backward",
         CppFunction::makeFromBoxedFunction<refuse_second<kPair>>());
}

}  // namespace lagwise::ops
