#include "lagwise/ops/dense.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/sum.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "lagwise/ops/torch/blas_threads.h"
#include "lagwise/ops/torch/once_differentiable.h"
#include "lagwise/ops/torch/recorded.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "dense";

void check(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  TORCH_CHECK(weight.dim() == 2, kOp, ": expected weight [O, I], got ", weight.sizes());
  TORCH_CHECK(x.dim() >= 1 && x.size(-1) == weight.size(1), kOp,
              ": expected x [.., I] with I = ", weight.size(1), ", got ", x.sizes());
  TORCH_CHECK(!bias.defined() || bias.sizes() == weight.sizes().slice(0, 1), kOp,
              ": expected bias [O] with O = ", weight.size(0), ", got ", bias.sizes());
}

/// Calls fn(begin, count) over pieces of `size`, in parallel: eight where a piece has
/// work for a millisecond or so, fewer where `least` would not fill one.
template <class Fn>
void in_pieces(int64_t size, int64_t least, const Fn& fn) {
  const int64_t piece = std::max(least, (size + 7) / 8);
  at::parallel_for(0, (size + piece - 1) / piece, 1, [&](int64_t first, int64_t last) {
    // A pool's thread does not know what its caller has switched off.
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    for (int64_t i = first; i < last; ++i)
      fn(i * piece, std::min(piece, size - i * piece));
  });
}

/// The rows of x, dense.
Tensor rows_of(const Tensor& x) { return x.reshape({-1, x.size(-1)}).contiguous(); }

Tensor multiply(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor y = at::empty({x.size(0), weight.size(0)}, x.options());
  const Tensor turned = weight.t();
  in_pieces(x.size(0), 64, [&](int64_t begin, int64_t count) {
    Tensor to = y.narrow(0, begin, count);
    const Tensor from = x.narrow(0, begin, count);
    if (bias.defined())
      at::cpu::addmm_out(to, bias, from, turned);
    else
      at::cpu::mm_out(to, from, turned);
  });
  return y;
}

/// dx = dy W
Tensor input_gradient(const Tensor& dy, const Tensor& weight) {
  const Tensor dx = at::empty({dy.size(0), weight.size(1)}, dy.options());
  in_pieces(dy.size(0), 64, [&](int64_t begin, int64_t count) {
    Tensor to = dx.narrow(0, begin, count);
    at::cpu::mm_out(to, dy.narrow(0, begin, count), weight);
  });
  return dx;
}

/// dW = dy^T x and db = dy^T 1, those that are defined, by pieces of the outputs.
void weight_gradients(const Tensor& dy, const Tensor& x, const Tensor& dw,
                      const Tensor& db) {
  in_pieces(dy.size(1), 16, [&](int64_t begin, int64_t count) {
    const Tensor some = dy.narrow(1, begin, count);
    if (dw.defined()) {
      Tensor to = dw.narrow(0, begin, count);
      at::cpu::mm_out(to, some.t(), x);
    }
    if (db.defined()) {
      Tensor sum = db.narrow(0, begin, count);
      at::sum_out(sum, some, {0});
    }
  });
}

struct DenseFunction : torch::autograd::Function<DenseFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight,
                        const c10::optional<Tensor>& bias) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["biased"] = bias.has_value();
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto sizes = x.sizes().vec();
    sizes.back() = weight.size(0);
    return multiply(rows_of(x), weight, bias.value_or(Tensor())).view(sizes);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1];
    const bool biased = ctx->saved_data["biased"].toBool();
    Tensor dx, dw, db;
    {
      const at::AutoGradMode off(false);
      const Tensor dy = rows_of(grads[0]);
      if (ctx->needs_input_grad(0)) dx = input_gradient(dy, weight).view(x.sizes());
      if (ctx->needs_input_grad(1)) dw = at::empty(weight.sizes(), dy.options());
      if (biased && ctx->needs_input_grad(2))
        db = at::empty({dy.size(1)}, dy.options());
      weight_gradients(dy, rows_of(x), dw, db);
    }
    return once_differentiable(kOp, {x, weight, grads[0]}, {dx, dw, db});
  }
};

}  // namespace

Tensor dense(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check(x, weight, bias);
  if (blas_threads() > 1 || x.numel() == 0)
    return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
  return recorded("lagwise::dense", x, weight, [&] {
    return DenseFunction::apply(
        x, weight, bias.defined() ? c10::optional<Tensor>(bias) : c10::nullopt);
  });
}

}  // namespace lagwise::ops
