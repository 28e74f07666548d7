#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <vector>

#include "lagwise/kernels/turn_table.h"
#include "lagwise/ops/parallel/heads.h"
#include "lagwise/ops/rotate.h"
#include "lagwise/ops/torch/define.h"
#include "lagwise/ops/torch/differentiable_pair.h"

namespace lagwise::ops {
namespace {

using at::Tensor;

constexpr const char* kOp = "rotation_table";
constexpr int64_t kRows = 256;  // a multiple of the kernel's 64

/// What a call takes, in the order of its schema.
struct TableArguments {
  Tensor positions, frequency;
  double scale;
  int64_t type;  // an at::ScalarType
};

template <class Visit>
void each_argument(TableArguments& x, const Visit& visit) {
  visit(x.positions), visit(x.frequency), visit(x.scale), visit(x.type);
}

const DifferentiablePair kPair = {kOp,
                                  "lagwise::rotation_table",
                                  "lagwise::_rotation_table_backward",
                                  {1},  // frequency
                                  1,
                                  1};

std::vector<int64_t> check(const Tensor& positions, const Tensor& frequency,
                           at::ScalarType type) {
  TORCH_CHECK(positions.dim() == 3 && positions.scalar_type() == at::kDouble, kOp,
              ": expected positions [B|1, N, A], Double, got ", positions.sizes(), ", ",
              positions.scalar_type());
  TORCH_CHECK(frequency.dim() == 2 && frequency.scalar_type() == at::kDouble, kOp,
              ": expected frequency [H|1, P], Double, got ", frequency.sizes(), ", ",
              frequency.scalar_type());
  const int64_t axes = positions.size(2), planes = frequency.size(1);
  TORCH_CHECK(axes > 0 && planes % axes == 0, kOp, ": expected the number of planes, ",
              planes, ", to be a multiple of the number of axes, got ", axes);
  TORCH_CHECK(type == at::kFloat || type == at::kDouble, kOp,
              ": expected a table of Float or Double, got ", type);
  return {positions.size(0), frequency.size(0), positions.size(1), 2 * planes};
}

template <class T>
void fill(const Tensor& positions, const Tensor& frequency, double scale,
          Tensor& table) {
  const int64_t n = positions.size(1), axes = positions.size(2);
  const int64_t heads = table.size(1), planes = frequency.size(1);
  const int64_t blocks = (n + kRows - 1) / kRows;
  const int64_t tasks = table.size(0) * heads * blocks;
  at::parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> scratch(size_t(kernels::turn_table_scratch(planes)));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t head = task / blocks, from = task % blocks * kRows;
      const int64_t to = std::min(n, from + kRows);
      const double* const p = positions.data_ptr<double>() + head / heads * n * axes;
      const double* const f = frequency.data_ptr<double>() + head % heads * planes;
      const MatView<const double> rows{p, n, axes, axes};
      kernels::turn_table<T>(rows.slice(from, to), f, scale,
                             head_view<T>(table, head).slice(from, to), scratch.data());
    }
  });
}

void table_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  TableArguments x;
  read_arguments(taken.data(), x);
  const auto type = static_cast<at::ScalarType>(x.type);
  const auto sizes = check(x.positions, x.frequency, type);
  Tensor table = at::empty(sizes, x.positions.options().dtype(type));
  AT_DISPATCH_FLOATING_TYPES(type, "rotation_table", [&] {
    fill<scalar_t>(x.positions.contiguous(), x.frequency.contiguous(), x.scale, table);
  });
  stack->emplace_back(table);
}

/// With t = p f: d/df (cos t, sin t) = p (-sin t, cos t), summed over rows in double.
Tensor frequency_gradient(const Tensor& positions, const Tensor& table,
                          const Tensor& g) {
  const int64_t planes = table.size(3) / 2, axes = positions.size(2);
  const auto cosines = [&](const Tensor& x) { return x.narrow(3, 0, planes); };
  const auto sines = [&](const Tensor& x) { return x.narrow(3, planes, planes); };
  const Tensor d_angle =
      (cosines(table) * sines(g) - sines(table) * cosines(g)).to(at::kDouble);
  const Tensor by_axis = d_angle.reshape(
      {table.size(0), table.size(1), table.size(2), axes, planes / axes});
  const Tensor p = positions.unsqueeze(1).unsqueeze(4);  // [B|1, 1, N, A, 1]
  return (by_axis * p).sum(at::IntArrayRef{0, 2}).reshape({table.size(1), planes});
}

void backward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  const Tensor &g = taken[0].toTensor(), &table = taken[2].toTensor();  // after wanted
  TableArguments x;
  read_arguments(&taken[3], x);
  const auto type = static_cast<at::ScalarType>(x.type);
  const auto sizes = check(x.positions, x.frequency, type);
  for (const Tensor& like : {table, g})
    TORCH_CHECK(like.sizes() == at::IntArrayRef(sizes) && like.scalar_type() == type,
                kOp, ": expected a table and its gradient ", sizes, ", ", type,
                ", got ", like.sizes(), ", ", like.scalar_type());
  stack->emplace_back(frequency_gradient(x.positions, table, g));
}

/// Under torch's key Autograd, above both.
void table_autograd(const c10::OperatorHandle& op, Stack* stack) {
  TableArguments x;
  read_call(op, *stack, x);
  // Returning no gradient would look to a learner like a gradient of zero.
  TORCH_CHECK(!x.positions.requires_grad(), kOp,
              ": expected positions that need no gradient, got some that do");
  differentiate<kPair>(op, stack);
}

}  // namespace

Tensor rotation_table(const Tensor& positions, const Tensor& frequency, double scale,
                      at::ScalarType type) {
  Stack stack;
  write_arguments(
      TableArguments{positions, frequency, scale, static_cast<int64_t>(type)}, stack);
  call_forward<kPair>(stack);
  return stack[0].toTensor();
}

using torch::CppFunction;

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  define(m,
         "rotation_table(Tensor positions, Tensor frequency, float scale=1, "
         "ScalarType dtype=6) -> Tensor");
  define(
      m,
      "_rotation_table_backward(Tensor d_table, bool[] wanted, Tensor table, "
      "Tensor positions, Tensor frequency, float scale, ScalarType dtype) -> Tensor");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("rotation_table", CppFunction::makeFromBoxedFunction<table_op>());
  m.impl("_rotation_table_backward", CppFunction::makeFromBoxedFunction<backward_op>());
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("rotation_table", CppFunction::makeFromBoxedFunction<table_autograd>());
  m.impl("_rotation_table_backward",
         CppFunction::makeFromBoxedFunction<refuse_second<kPair>>());
}

}  // namespace lagwise::ops
