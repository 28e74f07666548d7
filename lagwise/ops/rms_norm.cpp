#include "lagwise/ops/rms_norm.h"

#include <c10/util/Exception.h>
#include <torch/library.h>

#include "lagwise/ops/rms_norm_passes.h"
#include "lagwise/ops/torch/define.h"
#include "lagwise/ops/torch/differentiable_pair.h"
#include "lagwise/ops/torch/expect.h"

namespace lagwise::ops {
namespace {

using at::Tensor;

constexpr const char* kOp = "rms_norm";

/// What a call takes, in the order of its schema.
struct RmsNormArguments {
  Tensor x, gain;
  double eps;
};

template <class Visit>
void each_argument(RmsNormArguments& x, const Visit& visit) {
  visit(x.x), visit(x.gain), visit(x.eps);
}

const DifferentiablePair kPair = {kOp,
                                  "lagwise::_rms_norm",
                                  "lagwise::_rms_norm_backward",
                                  {0, 1},  // x, gain
                                  2,
                                  1,
                                  1};

void check(const Tensor& x, const Tensor& gain) {
  const auto type = x.scalar_type();
  TORCH_CHECK(type == at::kFloat || type == at::kDouble, kOp,
              ": expected x of Float or Double, got ", type);
  const int64_t axes = gain.dim();
  TORCH_CHECK((axes == 1 || axes == 2) && x.dim() >= axes &&
                  x.sizes().slice(static_cast<size_t>(x.dim() - axes)) == gain.sizes(),
              kOp,
              ": expected x [.., C] and gain [C], or x [.., G, C] and gain [G, C], ",
              "got ", x.sizes(), " and ", gain.sizes());
  TORCH_CHECK(gain.scalar_type() == type, kOp, ": expected gain of ", type, ", got ",
              gain.scalar_type());
}

/// _rms_norm: y, and the inverse size of each row.
void forward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  RmsNormArguments given;
  read_arguments(taken.data(), given);
  check(given.x, given.gain);
  const RmsForward to =
      rms_forward(given.x.contiguous(), given.gain.contiguous(), given.eps);
  stack->emplace_back(to.y);
  stack->emplace_back(to.inv_size);
}

/// _rms_norm_backward: of x and gain.
void backward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  const Tensor &d_y = taken[0].toTensor(), &r = taken[2].toTensor();  // after wanted
  RmsNormArguments given;
  read_arguments(&taken[3], given);
  const Tensor &x = given.x, &gain = given.gain;
  check(x, gain);
  const int64_t rows = x.size(-1) == 0 ? 0 : x.numel() / x.size(-1);
  expect_tensor(kOp, "d_y", "like x", d_y, x.sizes(), x);
  expect_tensor(kOp, "inv_size", "[rows]", r, {rows}, x);
  const RmsGradients to =
      rms_backward(x.contiguous(), gain.contiguous(), r.contiguous(), d_y.contiguous());
  stack->emplace_back(to.x);
  stack->emplace_back(to.gain);
}

void rms_norm_op(const c10::OperatorHandle&, Stack* stack) {
  call_forward<kPair>(*stack);
  stack->pop_back();  // the inverse sizes
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  Stack stack;
  write_arguments(RmsNormArguments{x, gain, eps}, stack);
  call_forward<kPair>(stack);
  return stack[0].toTensor();
}

using torch::CppFunction;

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  define(m, "rms_norm(Tensor x, Tensor gain, float eps=1e-5) -> Tensor",
         CppFunction::makeFromBoxedFunction<rms_norm_op>());
  define(m,
         "_rms_norm(Tensor x, Tensor gain, float eps) -> (Tensor y, Tensor inv_size)");
  define(m,
         "_rms_norm_backward(Tensor d_y, bool[] wanted, Tensor inv_size, Tensor x, "
         "Tensor gain, float eps) -> (Tensor x, Tensor gain)");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("_rms_norm", CppFunction::makeFromBoxedFunction<forward_op>());
  m.impl("_rms_norm_backward", CppFunction::makeFromBoxedFunction<backward_op>());
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("_rms_norm", CppFunction::makeFromBoxedFunction<differentiate<kPair>>());
  m.impl("_rms_norm_backward",
         CppFunction::makeFromBoxedFunction<refuse_second<kPair>>());
}

}  // namespace lagwise::ops
