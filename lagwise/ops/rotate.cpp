#include "lagwise/ops/rotate.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>

#include "lagwise/kernels/rotate.h"
#include "lagwise/ops/parallel/heads.h"
#include "lagwise/ops/torch/once_differentiable.h"
#include "lagwise/ops/torch/rows_first.h"
#include "lagwise/ops/torch_names.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using kernels::Pairs;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "rotate";

Pairs read_layout(StringView layout) {
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

Tensor rotate_cpu(const Tensor& x_in, const Tensor& table_in, StringView layout,
                  bool opposite) {
  check(x_in, table_in.sizes());
  check_alike(x_in, table_in, "table");
  const Pairs pairs = read_layout(layout);
  const Tensor x = side_by_side(x_in), table = side_by_side(table_in);
  Tensor y = empty_in_order(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rotate", [&] {
    rotate_heads<scalar_t>(x, table, pairs, opposite, y);
  });
  return y;
}

Tensor rotate_meta(const Tensor& x, const Tensor& table, StringView layout, bool) {
  check(x, table.sizes());
  check_alike(x, table, "table");
  read_layout(layout);
  return empty_in_order(x);
}

Tensor table_gradient_cpu(const Tensor& x_in, const Tensor& g_in,
                          at::IntArrayRef table_sizes, StringView layout,
                          bool opposite) {
  check(x_in, table_sizes);
  check_alike(x_in, g_in, "gradient");
  TORCH_CHECK(g_in.sizes() == x_in.sizes(), kOp, ": expected a gradient like x, ",
              x_in.sizes(), ", got ", g_in.sizes());
  const Pairs pairs = read_layout(layout);
  const Tensor x = side_by_side(x_in), g = side_by_side(g_in);
  Tensor d_table = at::zeros(table_sizes, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rotate", [&] {
    gradient_heads<scalar_t>(x, g, pairs, opposite, d_table);
  });
  return d_table;
}

Tensor table_gradient_meta(const Tensor& x, const Tensor&, at::IntArrayRef table_sizes,
                           StringView, bool) {
  return at::empty(table_sizes, x.options());
}

Tensor call_table_gradient(const Tensor& x, const Tensor& g, at::IntArrayRef sizes,
                           const std::string& layout, bool opposite) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lagwise::_rotate_table_gradient", "")
                             .typed<decltype(table_gradient_cpu)>();
  return op.call(x, g, sizes, layout, opposite);
}

struct Rotate : torch::autograd::Function<Rotate> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& table,
                        const std::string& layout, bool opposite) {
    // x is needed for the gradient of the table alone; do not keep it alive for less.
    ctx->save_for_backward({table.requires_grad() ? x : Tensor(), table});
    ctx->saved_data["layout"] = layout;
    ctx->saved_data["opposite"] = opposite;
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    return rotate(x, table, layout, opposite);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &table = saved[1], &g = grads[0];
    const std::string layout = ctx->saved_data["layout"].toStringRef();
    const bool opposite = ctx->saved_data["opposite"].toBool();
    variable_list gradients(2);
    {
      at::AutoGradMode off(false);
      gradients[0] = rotate(g, table, layout, !opposite);
      if (x.defined())
        gradients[1] = call_table_gradient(x, g, table.sizes(), layout, opposite);
    }
    gradients = once_differentiable(kOp, {x, table, g}, std::move(gradients));
    gradients.resize(4);  // the layout and the direction have none
    return gradients;
  }
};

Tensor rotate_autograd(const Tensor& x, const Tensor& table, StringView layout,
                       bool opposite) {
  return Rotate::apply(x, table, std::string(layout), opposite);
}

}  // namespace

Tensor rotate(const Tensor& x, const Tensor& table, const std::string& layout,
              bool opposite) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lagwise::rotate", "")
                             .typed<decltype(rotate_cpu)>();
  return op.call(x, table, layout, opposite);
}

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  m.def(
      "rotate(Tensor x, Tensor table, str layout, bool opposite=False) -> "
      "Tensor");
  m.def(
      "_rotate_table_gradient(Tensor x, Tensor gradient, int[] table_sizes, "
      "str layout, bool opposite) -> Tensor");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("rotate", rotate_cpu);
  m.impl("_rotate_table_gradient", table_gradient_cpu);
}
TORCH_LIBRARY_IMPL(lagwise, Meta, m) {
  m.impl("rotate", rotate_meta);
  m.impl("_rotate_table_gradient", table_gradient_meta);
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) { m.impl("rotate", rotate_autograd); }

}  // namespace lagwise::ops
