#include "lagwise/ops/rotate.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <algorithm>

#include "lagwise/kernels/rotate.h"
#include "lagwise/ops/parallel/heads.h"
#include "lagwise/ops/torch/define.h"
#include "lagwise/ops/torch/differentiable_pair.h"
#include "lagwise/ops/torch/rows_first.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using kernels::Pairs;

constexpr const char* kOp = "rotate";

/// What a call takes, in the order of its schema.
struct RotateArguments {
  Tensor x, table;
  std::string layout;
  bool opposite;
};

template <class Visit>
void each_argument(RotateArguments& x, const Visit& visit) {
  visit(x.x), visit(x.table), visit(x.layout), visit(x.opposite);
}

const DifferentiablePair kPair = {
    kOp, "lagwise::rotate", "lagwise::_rotate_backward", {0, 1}, 1, 1, 0,
    {},  {{0, 1}}};  // x is read for the gradient of the table alone

Pairs read_layout(const std::string& layout) {
  TORCH_CHECK(layout == "interleaved" || layout == "half", kOp,
              ": expected layout interleaved or half, got '", layout, "'");
  return layout == "half" ? Pairs::half : Pairs::interleaved;
}

void check(const Tensor& x, at::IntArrayRef table) {
  TORCH_CHECK(x.dim() == 4, kOp, ": expected x [B, H, N, D], got ", x.sizes());
  const auto type = x.scalar_type();
  TORCH_CHECK(type == at::kFloat || type == at::kDouble, kOp,
              ": expected Float or Double, got ", type);
  const auto fits = [&](int64_t axis) {
    return table[size_t(axis)] == 1 || table[size_t(axis)] == x.size(axis);
  };
  TORCH_CHECK(table.size() == 4 && fits(0) && fits(1) && table[2] == x.size(2) &&
                  table[3] % 2 == 0 && table[3] <= x.size(3),
              kOp, ": expected table [B|1, H|1, N, 2P] with 2P <= D for x ", x.sizes(),
              ", got ", table);
}

void check_alike(const Tensor& x, const Tensor& other, const char* name) {
  TORCH_CHECK(x.scalar_type() == other.scalar_type() && x.device() == other.device(),
              kOp, ": expected ", name, " of the type and device of x, ",
              x.scalar_type(), " on ", x.device(), ", got ", other.scalar_type(),
              " on ", other.device());
}

/// The kernel wants the numbers of a row side by side; rows and heads may lie anywhere.
Tensor side_by_side(const Tensor& x) {
  return x.stride(-1) == 1 || x.size(-1) <= 1 ? x : x.contiguous();
}

/// One head of a table that batch rows or heads may share.
template <class T>
MatView<T> table_view(const Tensor& table, int64_t b, int64_t h) {
  const int64_t head =
      (table.size(0) == 1 ? 0 : b) * table.size(1) + (table.size(1) == 1 ? 0 : h);
  return head_view<T>(table, head);
}

/// The rows of a sequence in blocks, one task each, which all heads pass in turn: their
/// part of the table stays in the second cache, 256 KB at D = 64, while long runs of
/// rows suit the prefetcher. Rows never meet, so any number of blocks gives the same
/// bits.
struct Blocks {
  explicit Blocks(int64_t n) : n(n) {
    const int64_t threads = at::get_num_threads();
    rows = std::clamp<int64_t>((n + threads - 1) / threads, 64, 1024);
    count = (n + rows - 1) / rows;
  }
  int64_t begin(int64_t i) const { return i * rows; }
  int64_t end(int64_t i) const { return std::min(n, (i + 1) * rows); }

  int64_t n, rows, count;
};

template <class T>
void rotate_heads(const Tensor& x, const Tensor& table, Pairs pairs, bool opposite,
                  Tensor& y) {
  const int64_t heads = x.size(1);
  const Blocks blocks(x.size(2));
  const int64_t tasks = x.size(0) * blocks.count;
  // Waking a thread costs more than turning less than about 128 KB.
  const int64_t grain =
      1 + (1 << 15) / (1 + heads * std::min(blocks.n, blocks.rows) * x.size(3));
  at::parallel_for(0, tasks, grain, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t b = task / blocks.count, block = task % blocks.count;
      const int64_t from = blocks.begin(block), to = blocks.end(block);
      for (int64_t h = 0; h < heads; ++h)
        kernels::rotate<T>(head_view<const T>(x, b * heads + h).slice(from, to),
                           table_view<const T>(table, b, h).slice(from, to), pairs,
                           opposite, head_view<T>(y, b * heads + h).slice(from, to));
    }
  });
}

/// Heads that share a table add up in one order, whoever computes them.
template <class T>
void gradient_heads(const Tensor& x, const Tensor& g, Pairs pairs, bool opposite,
                    Tensor& d_table) {
  const int64_t heads = x.size(1);
  const Blocks blocks(x.size(2));
  at::parallel_for(0, blocks.count, 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t from = blocks.begin(block), to = blocks.end(block);
      for (int64_t head = 0; head < x.size(0) * heads; ++head)
        kernels::rotate_gradient<T>(
            head_view<const T>(x, head).slice(from, to),
            head_view<const T>(g, head).slice(from, to), pairs, opposite,
            table_view<T>(d_table, head / heads, head % heads).slice(from, to));
    }
  });
}

Tensor rotated(const Tensor& x_in, const Tensor& table_in, Pairs pairs, bool opposite) {
  const Tensor x = side_by_side(x_in), table = side_by_side(table_in);
  Tensor y = empty_in_order(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rotate", [&] {
    rotate_heads<scalar_t>(x, table, pairs, opposite, y);
  });
  return y;
}

Tensor table_gradient(const Tensor& x_in, const Tensor& g_in, at::IntArrayRef sizes,
                      Pairs pairs, bool opposite) {
  const Tensor x = side_by_side(x_in), g = side_by_side(g_in);
  Tensor d_table = at::zeros(sizes, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rotate", [&] {
    gradient_heads<scalar_t>(x, g, pairs, opposite, d_table);
  });
  return d_table;
}

void rotate_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  RotateArguments given;
  read_arguments(taken.data(), given);
  const auto& [x, table, layout, opposite] = given;
  check(x, table.sizes());
  check_alike(x, table, "table");
  stack->emplace_back(rotated(x, table, read_layout(layout), opposite));
}

/// The gradient of x turns back; that of the table is a product of x and gradient.
void backward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  const Tensor& g = taken[0].toTensor();
  const auto wanted = taken[1].toBoolList();
  RotateArguments given;
  read_arguments(&taken[2], given);
  const auto& [x, table, layout, opposite] = given;
  TORCH_CHECK(wanted.size() == 2, kOp, ": expected wanted of 2, got ", wanted.size());
  check(g, table.sizes());
  check_alike(g, table, "table");
  const Pairs pairs = read_layout(layout);
  const auto none = [&] { return at::empty({0}, g.options()); };
  stack->emplace_back(wanted.get(0) ? rotated(g, table, pairs, !opposite) : none());
  if (!wanted.get(1)) return stack->emplace_back(none()), void();
  TORCH_CHECK(x.defined(), kOp, ": expected x for the gradient of the table, got none");
  check_alike(x, g, "gradient");
  TORCH_CHECK(g.sizes() == x.sizes(), kOp, ": expected a gradient like x, ", x.sizes(),
              ", got ", g.sizes());
  stack->emplace_back(table_gradient(x, g, table.sizes(), pairs, opposite));
}

}  // namespace

Tensor rotate(const Tensor& x, const Tensor& table, const std::string& layout,
              bool opposite) {
  Stack stack;
  write_arguments(RotateArguments{x, table, layout, opposite}, stack);
  call_forward<kPair>(stack);
  return stack[0].toTensor();
}

using torch::CppFunction;

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  define(m,
         "rotate(Tensor x, Tensor table, str layout, bool opposite=False) -> Tensor");
  define(m,
         "_rotate_backward(Tensor d_out, bool[] wanted, Tensor? x, Tensor table, "
         "str layout, bool opposite) -> (Tensor x, Tensor table)");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("rotate", CppFunction::makeFromBoxedFunction<rotate_op>());
  m.impl("_rotate_backward", CppFunction::makeFromBoxedFunction<backward_op>());
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("rotate", CppFunction::makeFromBoxedFunction<differentiate<kPair>>());
  m.impl("_rotate_backward",
         CppFunction::makeFromBoxedFunction<refuse_second<kPair>>());
}

}  // namespace lagwise::ops
