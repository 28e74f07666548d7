#include "lagwise/ops/rms_norm.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "lagwise/kernels/rms_norm.h"
#include "lagwise/ops/torch/once_differentiable.h"
#include "lagwise/ops/torch/recorded.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "rms_norm";

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

/// Rows of one piece: 16384 numbers or so, and never more than 64 pieces, of which each
/// has a gradient of the gain for itself. Whole groups, so that each begins with one.
int64_t rows_of_piece(int64_t rows, int64_t cols, int64_t groups) {
  const int64_t piece =
      std::max({int64_t{1}, 16384 / std::max<int64_t>(cols, 1), (rows + 63) / 64});
  return (piece + groups - 1) / groups * groups;
}

/// How many rows have gains of their own.
int64_t groups_of(const Tensor& gain) {
  return gain.dim() == 2 ? std::max<int64_t>(1, gain.size(0)) : 1;
}

/// Calls fn(piece, begin, end) over pieces of the rows.
template <class Fn>
void in_pieces(int64_t rows, int64_t piece, const Fn& fn) {
  at::parallel_for(0, (rows + piece - 1) / piece, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      fn(i, i * piece, std::min(rows, (i + 1) * piece));
  });
}

template <class T>
MatView<T> rows_of(const Tensor& x) {
  const int64_t cols = x.size(-1);
  return {static_cast<T*>(x.data_ptr()), cols == 0 ? 0 : x.numel() / cols, cols, cols,
          1};
}

/// y and r [rows], of dense x and gain.
std::pair<Tensor, Tensor> norm(const Tensor& x, const Tensor& gain, double eps) {
  const Tensor y = at::empty_like(x);
  const int64_t cols = x.size(-1), rows = cols == 0 ? 0 : x.numel() / cols;
  const Tensor r = at::empty({rows}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kOp, [&] {
    in_pieces(rows, rows_of_piece(rows, cols, groups_of(gain)),
              [&](int64_t, int64_t begin, int64_t end) {
                kernels::rms_norm<scalar_t>(
                    rows_of<const scalar_t>(x).slice(begin, end),
                    rows_of<const scalar_t>(gain), eps,
                    rows_of<scalar_t>(y).slice(begin, end),
                    r.data_ptr<scalar_t>() + begin);
              });
  });
  return {y, r};
}

/// dx and dgain. Each piece sums its own rows; the pieces are summed in their order.
std::pair<Tensor, Tensor> gradients(const Tensor& x, const Tensor& gain,
                                    const Tensor& r, const Tensor& dy) {
  const int64_t rows = r.size(0), cols = gain.size(-1), groups = groups_of(gain);
  const int64_t piece = rows_of_piece(rows, cols, groups);
  const Tensor dx = at::empty_like(x);
  const Tensor sums =
      at::zeros({(rows + piece - 1) / piece, groups, cols}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kOp, [&] {
    in_pieces(rows, piece, [&](int64_t i, int64_t begin, int64_t end) {
      kernels::rms_norm_gradient<scalar_t>(
          rows_of<const scalar_t>(x).slice(begin, end), rows_of<const scalar_t>(gain),
          r.data_ptr<scalar_t>() + begin, rows_of<const scalar_t>(dy).slice(begin, end),
          rows_of<scalar_t>(dx).slice(begin, end),
          rows_of<scalar_t>(sums).slice(i * groups, (i + 1) * groups));
    });
  });
  Tensor dgain = at::zeros({groups, cols}, x.options());
  for (int64_t i = 0; i < sums.size(0); ++i) dgain += sums[i];
  return {dx, dgain.view(gain.sizes())};
}

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, const Tensor& gain_in,
                        double eps) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const Tensor x = x_in.contiguous(), gain = gain_in.contiguous();
    const auto [y, r] = norm(x, gain, eps);
    ctx->save_for_backward({x_in, gain_in});
    ctx->saved_data["inv_size"] = r;
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    std::pair<Tensor, Tensor> found;
    {
      const at::AutoGradMode off(false);
      found = gradients(saved[0].contiguous(), saved[1].contiguous(),
                        ctx->saved_data["inv_size"].toTensor(), grads[0].contiguous());
    }
    return once_differentiable(kOp, {saved[0], saved[1], grads[0]},
                               {found.first, found.second, Tensor()});
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  check(x, gain);
  return recorded("lagwise::rms_norm", x, gain,
                  [&] { return RmsNormFunction::apply(x, gain, eps); });
}

}  // namespace lagwise::ops
