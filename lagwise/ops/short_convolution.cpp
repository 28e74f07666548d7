#include "lagwise/ops/short_convolution.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <algorithm>

#include "lagwise/kernels/short_convolution.h"
#include "lagwise/ops/dense_passes.h"
#include "lagwise/ops/parallel/heads.h"
#include "lagwise/ops/parallel/sums_in_order.h"
#include "lagwise/ops/torch/define.h"
#include "lagwise/ops/torch/differentiable_pair.h"
#include "lagwise/ops/torch/expect.h"

namespace lagwise::ops {
namespace {

using at::Tensor;

constexpr const char* kOp = "short_convolution";

/// What a call takes, in the order of its schema.
struct ConvolutionArguments {
  Tensor x, taps, before;
};

template <class Visit>
void each_argument(ConvolutionArguments& x, const Visit& visit) {
  visit(x.x), visit(x.taps), visit(x.before);
}

const DifferentiablePair kPair = {kOp,
                                  "lagwise::short_convolution",
                                  "lagwise::_short_convolution_backward",
                                  {0, 1, 2},
                                  1,
                                  1,
                                  0};

/// The columns of every row side by side.
Tensor with_rows(const Tensor& x) {
  return !x.defined() || x.stride(2) == 1 ? x : x.contiguous();
}

/// Checked, and in an order that the kernels take.
ConvolutionArguments read_convolution(const c10::IValue* from) {
  ConvolutionArguments given;
  read_arguments(from, given);
  const Tensor& x = given.x;
  TORCH_CHECK(x.dim() == 3, kOp, ": expected x [B, N, W], got ", x.sizes());
  const auto type = x.scalar_type();
  TORCH_CHECK(type == at::kFloat || type == at::kDouble, kOp,
              ": expected x of Float or Double, got ", type);
  const Tensor& taps = given.taps;
  TORCH_CHECK(taps.dim() == 2 && taps.size(0) > 0 && taps.size(1) == x.size(2), kOp,
              ": expected taps [K, W] with K > 0 and W = ", x.size(2), ", got ",
              taps.sizes());
  TORCH_CHECK(taps.scalar_type() == type, kOp, ": expected taps of ", type, ", got ",
              taps.scalar_type());
  if (given.before.defined())
    expect_tensor(kOp, "before", "[B, K - 1, W]", given.before,
                  {x.size(0), taps.size(0) - 1, x.size(2)}, x);
  return {with_rows(x), taps.contiguous(), with_rows(given.before)};
}

template <class T>
MatView<T> sequence(const Tensor& x, int64_t b) {
  if (!x.defined()) return {};
  return {static_cast<T*>(x.data_ptr()) + b * x.stride(0), x.size(1), x.size(2),
          x.stride(1), 1};
}

/// How sequences are cut: 16384 numbers or so a piece, never more than 64 or so pieces, of
/// which each has a gradient of the taps for itself, and at least as many rows as reach
/// back, so that the rows before a piece lie in the one before it.
struct Pieces {
  int64_t rows, reach, piece, each;
  Pieces(const Tensor& x, const Tensor& taps)
      : rows(x.size(1)), reach(taps.size(0) - 1) {
    const int64_t width = std::max<int64_t>(1, x.size(2));
    piece = std::max({int64_t{1}, reach, 16384 / width, rows * x.size(0) / 64});
    each = (rows + piece - 1) / piece;
  }
  int64_t begin(int64_t i) const { return i % each * piece; }
  int64_t end(int64_t i) const { return std::min(rows, begin(i) + piece); }
  int64_t sequence(int64_t i) const { return i / each; }
};

void forward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  const ConvolutionArguments given = read_convolution(taken.data());
  const Tensor &x = given.x, &taps = given.taps, &before = given.before;
  const Tensor y = at::empty(x.sizes(), x.options());
  const Pieces pieces(x, taps);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kOp, [&] {
    for_each_task<scalar_t>(x.size(0) * pieces.each, 0, [&](int64_t i, scalar_t*) {
      const int64_t b = pieces.sequence(i), begin = pieces.begin(i),
                    end = pieces.end(i);
      const auto rows = sequence<const scalar_t>(x, b);
      kernels::short_convolution<scalar_t>(
          begin == 0 ? sequence<const scalar_t>(before, b)
                     : rows.slice(begin - pieces.reach, begin),
          rows.slice(begin, end), matrix_view<const scalar_t>(taps),
          sequence<scalar_t>(y, b).slice(begin, end));
    });
  });
  stack->emplace_back(y);
}

/// _short_convolution_backward: of x, taps and before.
void backward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  const ConvolutionArguments given = read_convolution(&taken[2]);  // after wanted
  const Tensor &x = given.x, &taps = given.taps, &before = given.before;
  expect_tensor(kOp, "d_y", "like x", taken[0].toTensor(), x.sizes(), x);
  const Tensor dy = with_rows(taken[0].toTensor());
  const Pieces pieces(x, taps);
  const int64_t count = x.size(0) * pieces.each, reach = pieces.reach;
  const Tensor dx = at::empty(x.sizes(), x.options());
  const Tensor dbefore =
      before.defined() ? at::empty(before.sizes(), x.options()) : Tensor();
  // Each piece sums its own rows; the pieces are summed in their order.
  const Tensor sums = at::zeros({count, taps.size(0), taps.size(1)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kOp, [&] {
    for_each_task<scalar_t>(count, 0, [&](int64_t i, scalar_t*) {
      const int64_t b = pieces.sequence(i), begin = pieces.begin(i),
                    end = pieces.end(i);
      const auto weights = matrix_view<const scalar_t>(taps);
      const auto up = sequence<const scalar_t>(dy, b).slice(
          begin, std::min(pieces.rows, end + reach));
      const MatView<scalar_t> sum = sequence<scalar_t>(sums, i);
      kernels::short_convolution_gradient<scalar_t>(
          sequence<const scalar_t>(x, b).slice(begin, end), weights, up, 0,
          sequence<scalar_t>(dx, b).slice(begin, end), sum);
      if (begin == 0 && before.defined())
        kernels::short_convolution_gradient<scalar_t>(
            sequence<const scalar_t>(before, b), weights, up, -reach,
            sequence<scalar_t>(dbefore, b), sum);
    });
  });
  if (dbefore.defined() && pieces.rows == 0) dbefore.zero_();
  const Tensor dtaps = at::zeros(taps.sizes(), x.options());
  add_in_order(sums, dtaps);
  stack->emplace_back(dx);
  stack->emplace_back(dtaps);
  stack->emplace_back(dbefore.defined() ? dbefore : at::empty({0}, x.options()));
}

}  // namespace

Tensor short_convolution(const Tensor& x, const Tensor& taps, const Tensor& before) {
  Stack stack;
  write_arguments(ConvolutionArguments{x, taps, before}, stack);
  call_forward<kPair>(stack);
  return stack[0].toTensor();
}

using torch::CppFunction;

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  define(m, "short_convolution(Tensor x, Tensor taps, Tensor? before=None) -> Tensor");
  define(
      m,
      "_short_convolution_backward(Tensor d_y, bool[] wanted, Tensor x, Tensor taps, "
      "Tensor? before) -> (Tensor x, Tensor taps, Tensor before)");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("short_convolution", CppFunction::makeFromBoxedFunction<forward_op>());
  m.impl("_short_convolution_backward",
         CppFunction::makeFromBoxedFunction<backward_op>());
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("short_convolution",
         CppFunction::makeFromBoxedFunction<differentiate<kPair>>());
  m.impl("_short_convolution_backward",
         CppFunction::makeFromBoxedFunction<refuse_second<kPair>>());
}

}  // namespace lagwise::ops
