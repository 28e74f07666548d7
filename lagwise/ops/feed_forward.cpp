#include <ATen/Dispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <memory>
#include <type_traits>

#include "lagwise/kernels/gelu.h"
#include "lagwise/ops/dense.h"
#include "lagwise/ops/dense_checks.h"
#include "lagwise/ops/dense_passes.h"
#include "lagwise/ops/matrix_product.h"
#include "lagwise/ops/normed_rows.h"
#include "lagwise/ops/parallel/pieces.h"
#include "lagwise/ops/precision.h"
#include "lagwise/ops/recompute.h"
#include "lagwise/ops/torch/once_differentiable.h"
#include "lagwise/ops/torch/recorded.h"
#include "lagwise/ops/torch_names.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "feed_forward";

/// The layers as they are multiplied: weights are factors, x and biases are sums.
struct Layers {
  Tensor x;  // [rows, I]
  InputNorm norm;
  DenseWeights in, out;

  Layers(const Tensor& x_, const InputNorm& norm_, const DenseWeights& in_,
         const DenseWeights& out_, Precision precision)
      : x(dense_rows(x_)), norm(norm_) {
    const auto factor = [&](const Tensor& t) {
      return in_precision(t, precision).contiguous();
    };
    if (norm.gain.defined()) norm.gain = norm.gain.contiguous();
    in = {factor(in_.weight), in_.bias.contiguous()};
    out = {factor(out_.weight), out_.bias.contiguous()};
  }
  at::ScalarType factors() const { return in.weight.scalar_type(); }
};

/// h = norm(x) W_in^T, and y = gelu(h + b_in) W_out^T + b_out + start; some rows pass
/// through both layers before the next ones come, so that norm(x) and gelu(..) are nowhere
/// kept. h is kept as a factor would be, and GELU is taken of what is kept.
/// h is the widest thing that a model keeps: if it is to be computed anew it is empty.
std::pair<Tensor, Tensor> both_layers(const Layers& l, const Tensor& start) {
  const int64_t rows = l.x.size(0), inner = l.in.weight.size(0);
  const bool keeps = !recomputes();
  const Tensor h = at::empty({keeps ? rows : 0, inner}, l.in.weight.options());
  const Tensor y = at::empty({rows, l.out.weight.size(0)}, l.x.options());
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, l.factors(), kOp, [&] {
    using T = scalar_t;
    using Sum = SumOf<T>;
    const int64_t step = rows_at_once(l.in.weight.numel());
    in_pieces(rows, kDenseRows, [&](int64_t first, int64_t last) {
      const int64_t most = std::min(step, last - first);
      const NormedRows<T> x(l.x, l.norm, most);
      const Between<T> space(most * inner);
      const auto spare =
          std::make_unique_for_overwrite<T[]>(size_t(keeps ? 0 : most * inner));
      for (int64_t begin = first; begin < last; begin += step) {
        const int64_t end = std::min(last, begin + step), count = (end - begin) * inner;
        T* const kept = keeps ? h.data_ptr<T>() + begin * inner : spare.get();
        const auto view = [&](auto* data) {
          return MatView<std::remove_pointer_t<decltype(data)>>{data, end - begin,
                                                                inner, inner, 1};
        };
        multiply(x.block(begin, end), matrix_view<const T>(l.in.weight).transposed(),
                 false, view(space.room_for(kept)));
        space.keep(count, kept);
        kernels::gelu<Sum>(view(space.again(kept, count)), l.in.bias.data_ptr<Sum>(),
                           view(space.sums()));
        MatView<const Sum> add{};
        if (start.defined()) add = matrix_view<const Sum>(start).slice(begin, end);
        dense_some_rows<T>(view(space.factors(count)), l.out.weight, l.out.bias, add,
                           matrix_view<Sum>(y).slice(begin, end));
      }
    });
  });
  return {h, y};
}

/// The same of tensors with any strides; y in the shape of x.
std::pair<Tensor, Tensor> plain(const Tensor& x, const DenseWeights& in,
                                const DenseWeights& out, const Tensor& start,
                                const InputNorm& norm) {
  const auto [h, y] = both_layers(Layers(x, norm, in, out, precision()),
                                  start.defined() ? dense_rows(start) : Tensor());
  auto sizes = x.sizes().vec();
  sizes.back() = out.weight.size(0);
  return {h, y.view(sizes)};
}

/// The gradients of everything, from that of y.
struct Gradients {
  Tensor x;  // [rows, I]
  Tensor gain, in_weight, in_bias, out_weight, out_bias;
};

/// Ranges of rows each sum for themselves. Within one, some rows at a time go all the way
/// back while they are in the cache, with n = norm(x):
///
///     dg = dy W_out    g = gelu(h + b_in)     dh = dg gelu'(h + b_in)
///     dW_out += dy^T g     dW_in += dh^T n    dn = dh W_in    dx from dn
///
/// Where h was not kept it is n W_in^T again.
/// past: what else goes into dx, or undefined.
Gradients both_backwards(const Layers& l, const Tensor& h, const Tensor& dy,
                         const Tensor& past) {
  const auto empty = [&](at::IntArrayRef sizes) {
    return at::empty(sizes, l.x.options());
  };
  const int64_t rows = l.x.size(0), inputs = l.x.size(1), inner = l.in.weight.size(0);
  const Tensor gain = l.norm.gain.defined() ? empty({inputs}) : Tensor();
  const Gradients to{empty(l.x.sizes()),          gain,
                     empty(l.in.weight.sizes()),  empty({inner}),
                     empty(l.out.weight.sizes()), empty({l.out.weight.size(0)})};
  const bool kept_all = h.size(0) == rows;
  const int64_t ranges = ranges_of_rows(rows, l.in.weight.numel());
  const RangeSums gains(to.gain, ranges, true), in_w(to.in_weight, ranges),
      in_b(to.in_bias, ranges), out_w(to.out_weight, ranges),
      out_b(to.out_bias, ranges);
  const int64_t step = rows_at_once(l.in.weight.numel()), most = std::min(rows, step);
  const Tensor ones = at::ones({1, most}, l.in.weight.options());
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, l.factors(), kOp, [&] {
    using T = scalar_t;
    using Sum = SumOf<T>;
    const auto view = [](Sum* data, int64_t count, int64_t width) {
      return MatView<Sum>{data, count, width, width, 1};
    };
    const auto add_weights = [&](MatView<const T> d, MatView<const T> from, Sum* weight,
                                 Sum* bias, bool add) {
      multiply(d.transposed(), from, add, view(weight, d.cols, from.cols));
      sum_over_rows<T>(d, ones, add, bias);
    };
    at::parallel_for(0, ranges, 1, [&](int64_t first_range, int64_t last_range) {
      const NormedRows<T> x(l.x, l.norm, most);
      const Between<T> of_g(most * inner), of_dh(most * inner);
      const auto dn = std::make_unique_for_overwrite<Sum[]>(size_t(most * inputs));
      const auto spare =
          std::make_unique_for_overwrite<T[]>(size_t(kept_all ? 0 : most * inner));
      for (int64_t r = first_range; r < last_range; ++r) {
        const int64_t first = rows * r / ranges, last = rows * (r + 1) / ranges;
        for (int64_t begin = first; begin < last; begin += step) {
          const int64_t end = std::min(last, begin + step), count = end - begin;
          const auto up = matrix_view<const T>(dy).slice(begin, end);
          const MatView<const T> block = x.block(begin, end);
          const T* kept = kept_all ? h.data_ptr<T>() + begin * inner : spare.get();
          if (!kept_all) {
            multiply(block, matrix_view<const T>(l.in.weight).transposed(), false,
                     view(of_g.room_for(spare.get()), count, inner));
            of_g.keep(count * inner, spare.get());
          }
          multiply(up, matrix_view<const T>(l.out.weight), false,
                   view(of_dh.sums(), count, inner));
          const auto d_inner = view(of_dh.sums(), count, inner);
          kernels::gelu_gradient<Sum>(
              {of_g.again(kept, count * inner), count, inner, inner, 1},
              l.in.bias.data_ptr<Sum>(), d_inner, view(of_g.sums(), count, inner),
              d_inner);
          const MatView<const T> g{of_g.factors(count * inner), count, inner, inner, 1};
          const MatView<const T> dh{of_dh.factors(count * inner), count, inner, inner,
                                    1};
          add_weights(up, g, out_w.of<Sum>(r), out_b.of<Sum>(r), begin > first);
          add_weights(dh, block, in_w.of<Sum>(r), in_b.of<Sum>(r), begin > first);
          multiply(dh, matrix_view<const T>(l.in.weight), false,
                   view(dn.get(), count, inputs));
          x.block_gradient(begin, end, dn.get(), past, to.x, gains.of<Sum>(r));
        }
      }
    });
  });
  for (const RangeSums* sums : {&gains, &in_w, &in_b, &out_w, &out_b}) sums->add_up();
  return to;
}

struct FeedForwardFunction : torch::autograd::Function<FeedForwardFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& in_weight,
                        const Tensor& in_bias, const Tensor& out_weight,
                        const Tensor& out_bias, const Optional<Tensor>& start,
                        const Optional<Tensor>& gain, double eps) {
    ctx->save_for_backward(
        {x, in_weight, in_bias, out_weight, out_bias, gain.value_or(Tensor())});
    ctx->saved_data["started"] = start.has_value();
    ctx->saved_data["residual"] = start.has_value() && start->is_same(x);
    ctx->saved_data["eps"] = eps;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [h, y] = plain(x, {in_weight, in_bias}, {out_weight, out_bias},
                              start.value_or(Tensor()), {gain.value_or(Tensor()), eps});
    ctx->saved_data["h"] = h;
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &gain = saved[5];
    const Tensor h = ctx->saved_data["h"].toTensor();
    const bool residual = ctx->saved_data["residual"].toBool();
    const bool started = ctx->saved_data["started"].toBool() && !residual;
    Gradients to;
    {
      const at::AutoGradMode off(false);
      const Layers layers(
          x, {gain, ctx->saved_data["eps"].toDouble()}, {saved[1], saved[2]},
          {saved[3], saved[4]},
          h.scalar_type() == at::kBFloat16 ? Precision::bf16 : Precision::full);
      const Tensor dy = dense_rows(grads[0]);
      to = both_backwards(layers, h, dy.to(h.scalar_type()), residual ? dy : Tensor());
    }
    return once_differentiable(
        kOp, {x, saved[1], saved[3], gain, grads[0]},
        {to.x.view(x.sizes()), to.in_weight, to.in_bias, to.out_weight, to.out_bias,
         started ? grads[0] : Tensor(), to.gain, Tensor()});
  }
};

}  // namespace

Tensor feed_forward(const Tensor& x, const DenseWeights& in, const DenseWeights& out,
                    const Tensor& start, const InputNorm& norm) {
  check_dense(kOp, x, in, {});
  check_norm(kOp, x, norm);
  TORCH_CHECK(in.bias.defined() && out.bias.defined(), kOp,
              ": expected a bias of both layers");
  TORCH_CHECK(out.weight.dim() == 2 && out.weight.size(1) == in.weight.size(0), kOp,
              ": expected the second weight [O, F] with F = ", in.weight.size(0),
              ", got ", out.weight.sizes());
  if (x.numel() == 0) {
    return dense(at::gelu(dense(x, in.weight, in.bias)), out.weight, out.bias, start);
  }
  const auto optional = [](const Tensor& t) {
    return t.defined() ? Optional<Tensor>(t) : kNone;
  };
  return recorded("lagwise::feed_forward", x, in.weight, [&] {
    if (!wants_graph({x, in.weight, in.bias, out.weight, out.bias, start, norm.gain}))
      return plain(x, in, out, start, norm).second;
    return FeedForwardFunction::apply(x, in.weight, in.bias, out.weight, out.bias,
                                      optional(start), optional(norm.gain), norm.eps);
  });
}

}  // namespace lagwise::ops
