#include <ATen/Dispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "lagwise/kernels/gelu.h"
#include "lagwise/ops/dense.h"
#include "lagwise/ops/dense_checks.h"
#include "lagwise/ops/dense_passes.h"
#include "lagwise/ops/matrix_product.h"
#include "lagwise/ops/parallel/pieces.h"
#include "lagwise/ops/torch/once_differentiable.h"
#include "lagwise/ops/torch/recorded.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "feed_forward";

/// How much of gelu(h) is there at once. More rows would leave the cache; with fewer the
/// weights, which every product reads anew, would cost more than the product.
constexpr int64_t kInnerNumbers = 1 << 20;

/// h = x W_in^T + b_in, and y from it; some rows pass through both layers before the next
/// ones come, so that gelu(h) is nowhere kept.
std::pair<Tensor, Tensor> both_layers(const Tensor& x, const DenseWeights& in,
                                      const DenseWeights& out, const Tensor& start) {
  const int64_t rows = x.size(0), inner = in.weight.size(0);
  const Tensor h = at::empty({rows, inner}, x.options());
  const Tensor y = at::empty({rows, out.weight.size(0)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kOp, [&] {
    const int64_t step =
        std::max(kDenseRows, kInnerNumbers / std::max<int64_t>(1, inner));
    in_pieces(rows, kDenseRows, [&](int64_t first, int64_t last) {
      std::vector<scalar_t> space(
          static_cast<size_t>(std::min(step, last - first) * inner));
      for (int64_t begin = first; begin < last; begin += step) {
        const int64_t end = std::min(last, begin + step);
        const auto some = matrix_view<scalar_t>(h).slice(begin, end);
        dense_some_rows<scalar_t>(matrix_view<const scalar_t>(x).slice(begin, end),
                                  in.weight, in.bias, {}, some);
        kernels::gelu<scalar_t>(some.data, some.rows * inner, space.data());
        MatView<const scalar_t> from{};
        if (start.defined())
          from = matrix_view<const scalar_t>(start).slice(begin, end);
        dense_some_rows<scalar_t>({space.data(), end - begin, inner, inner, 1},
                                  out.weight, out.bias, from,
                                  matrix_view<scalar_t>(y).slice(begin, end));
      }
    });
  });
  return {h, y};
}

/// The same of tensors with any strides; y in the shape of x.
std::pair<Tensor, Tensor> plain(const Tensor& x, const DenseWeights& in,
                                const DenseWeights& out, const Tensor& start) {
  const auto [h, y] =
      both_layers(dense_rows(x), {in.weight.contiguous(), in.bias.contiguous()},
                  {out.weight.contiguous(), out.bias.contiguous()},
                  start.defined() ? dense_rows(start) : Tensor());
  auto sizes = x.sizes().vec();
  sizes.back() = out.weight.size(0);
  return {h, y.view(sizes)};
}

/// From dg = dy W_out: g = gelu(h), and dh in the place of dg.
void through_gelu(const Tensor& h, const Tensor& g, const Tensor& dg) {
  AT_DISPATCH_FLOATING_TYPES(h.scalar_type(), kOp, [&] {
    in_pieces(h.numel(), 4096, [&](int64_t begin, int64_t end) {
      scalar_t* const gradient = dg.data_ptr<scalar_t>() + begin;
      kernels::gelu_gradient<scalar_t>(h.data_ptr<scalar_t>() + begin, gradient,
                                       end - begin, g.data_ptr<scalar_t>() + begin,
                                       gradient);
    });
  });
}

struct FeedForwardFunction : torch::autograd::Function<FeedForwardFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& in_weight,
                        const Tensor& in_bias, const Tensor& out_weight,
                        const Tensor& out_bias, const c10::optional<Tensor>& start) {
    ctx->save_for_backward({x, in_weight, out_weight});
    ctx->saved_data["started"] = start.has_value();
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [h, y] = plain(x, {in_weight, in_bias}, {out_weight, out_bias},
                              start.value_or(Tensor()));
    ctx->saved_data["h"] = h;
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& x = saved[0];
    const Tensor h = ctx->saved_data["h"].toTensor();
    const bool started = ctx->saved_data["started"].toBool();
    Tensor dx, gradients[4];
    {
      const at::AutoGradMode off(false);
      const Tensor in = saved[1].contiguous(), out = saved[2].contiguous();
      const Tensor dy = dense_rows(grads[0]), rows = dense_rows(x);
      const Tensor g = at::empty(h.sizes(), h.options());
      const Tensor dh = at::empty(h.sizes(), h.options());
      dense_input_gradient(dy, out, false, dh);
      through_gelu(h, g, dh);
      for (const size_t i : {0u, 1u, 2u, 3u})  // weight and bias of both
        if (ctx->needs_input_grad(i + 1)) {
          const Tensor& weight = i < 2 ? in : out;
          gradients[i] = i % 2 == 0 ? at::empty(weight.sizes(), weight.options())
                                    : at::empty({weight.size(0)}, weight.options());
        }
      dense_weight_gradients(dy, g, gradients[2], gradients[3]);
      dense_weight_gradients(dh, rows, gradients[0], gradients[1]);
      if (ctx->needs_input_grad(0)) {
        dx = at::empty(x.sizes(), dy.options());
        dense_input_gradient(dh, in, false, dx.view({-1, x.size(-1)}));
      }
    }
    return once_differentiable(kOp, {x, saved[1], saved[2], grads[0]},
                               {dx, gradients[0], gradients[1], gradients[2],
                                gradients[3], started ? grads[0] : Tensor()});
  }
};

}  // namespace

Tensor feed_forward(const Tensor& x, const DenseWeights& in, const DenseWeights& out,
                    const Tensor& start) {
  check_dense(kOp, x, in, {});
  TORCH_CHECK(in.bias.defined() && out.bias.defined(), kOp,
              ": expected a bias of both layers");
  TORCH_CHECK(out.weight.dim() == 2 && out.weight.size(1) == in.weight.size(0), kOp,
              ": expected the second weight [O, F] with F = ", in.weight.size(0),
              ", got ", out.weight.sizes());
  if (x.numel() == 0)
    return dense(at::gelu(dense(x, in.weight, in.bias)), out.weight, out.bias, start);
  return recorded("lagwise::feed_forward", x, in.weight, [&] {
    if (!wants_graph({x, in.weight, in.bias, out.weight, out.bias, start}))
      return plain(x, in, out, start).second;
    return FeedForwardFunction::apply(
        x, in.weight, in.bias, out.weight, out.bias,
        start.defined() ? c10::optional<Tensor>(start) : c10::nullopt);
  });
}

}  // namespace lagwise::ops
