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
#include "lagwise/ops/parallel/pieces.h"
#include "lagwise/ops/precision.h"
#include "lagwise/ops/rms_norm.h"
#include "lagwise/ops/torch/once_differentiable.h"
#include "lagwise/ops/torch/recorded.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "feed_forward";

/// How many rows of h pass at once. More would leave the cache; with fewer the weights,
/// which every product reads anew, would cost more than the product.
int64_t rows_at_once(int64_t inner) {
  constexpr int64_t kNumbers = 1 << 20;
  return std::max(kDenseRows, kNumbers / std::max<int64_t>(1, inner));
}

/// Numbers between two products, whose factors are of type T and whose sums are of
/// another (bf16 and f32), or of the same. `kept` is a place for numbers as factors.
template <class T>
class Between {
 public:
  using Sum = SumOf<T>;
  explicit Between(int64_t most)
      : sums_(std::make_unique_for_overwrite<Sum[]>(static_cast<size_t>(most))) {
    if constexpr (kRounds)
      factors_ = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(most));
  }
  Sum* sums() const { return sums_.get(); }

  /// Where to put sums that `keep` will round to `kept`.
  Sum* room_for(T* kept) const {
    if constexpr (kRounds)
      return sums();
    else
      return kept;
  }
  void keep(int64_t count, T* kept) const {
    if constexpr (kRounds) std::copy_n(sums(), count, kept);
  }
  /// What was kept, as sums.
  const Sum* again(const T* kept, int64_t count) const {
    if constexpr (!kRounds) return kept;
    else
      return std::copy_n(kept, count, sums()), sums();
  }
  /// The first so many of sums(), as factors.
  const T* factors(int64_t count) const {
    if constexpr (!kRounds) return sums();
    else
      return std::copy_n(sums(), count, factors_.get()), factors_.get();
  }

 private:
  static constexpr bool kRounds = !std::is_same_v<T, Sum>;
  std::unique_ptr<Sum[]> sums_;
  std::unique_ptr<T[]> factors_;
};

/// h = x W_in^T + b_in, and y from it; some rows pass through both layers before the next
/// ones come, so that gelu(h) is nowhere kept. h is kept as a factor would be, and GELU is
/// taken of what is kept.
std::pair<Tensor, Tensor> both_layers(const Tensor& x, const DenseWeights& in,
                                      const DenseWeights& out, const Tensor& start) {
  const int64_t rows = x.size(0), inner = in.weight.size(0);
  const Tensor h = at::empty({rows, inner}, x.options());
  const Tensor y = at::empty({rows, out.weight.size(0)}, in.bias.options());
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, x.scalar_type(), kOp, [&] {
    using T = scalar_t;
    using Sum = SumOf<T>;
    const int64_t step = rows_at_once(inner);
    in_pieces(rows, kDenseRows, [&](int64_t first, int64_t last) {
      const Between<T> space(std::min(step, last - first) * inner);
      for (int64_t begin = first; begin < last; begin += step) {
        const int64_t end = std::min(last, begin + step), count = (end - begin) * inner;
        const auto from = matrix_view<const T>(x).slice(begin, end);
        T* const kept = h.data_ptr<T>() + begin * inner;
        dense_some_rows<T>(from, in.weight, in.bias, {},
                           {space.room_for(kept), end - begin, inner, inner, 1});
        space.keep(count, kept);
        kernels::gelu<Sum>(space.again(kept, count), count, space.sums());
        MatView<const Sum> add{};
        if (start.defined()) add = matrix_view<const Sum>(start).slice(begin, end);
        dense_some_rows<T>({space.factors(count), end - begin, inner, inner, 1},
                           out.weight, out.bias, add,
                           matrix_view<Sum>(y).slice(begin, end));
      }
    });
  });
  return {h, y};
}

/// The same of tensors with any strides, normed first; y in the shape of x.
std::pair<Tensor, Tensor> plain(const Tensor& x, const DenseWeights& in,
                                const DenseWeights& out, const Tensor& start,
                                const InputNorm& norm) {
  const auto factor = [](const Tensor& t) {
    return in_precision(t, precision()).contiguous();
  };
  const auto [h, y] = both_layers(factor(dense_rows(normed(x, norm).y)),
                                  {factor(in.weight), in.bias.contiguous()},
                                  {factor(out.weight), out.bias.contiguous()},
                                  start.defined() ? dense_rows(start) : Tensor());
  auto sizes = x.sizes().vec();
  sizes.back() = out.weight.size(0);
  return {h, y.view(sizes)};
}

/// The gradients of everything, from that of y.
struct Gradients {
  Tensor rows;  // [rows, I], of the normed rows
  Tensor in_weight, in_bias, out_weight, out_bias;
};

/// Ranges of rows each sum for themselves. Within one, some rows at a time go all the way
/// back while they are in the cache:
///
///     dg = dy W_out    g = gelu(h)    dh = dg gelu'(h)    dx = dh W_in
///     dW_out += dy^T g                dW_in += dh^T x
Gradients both_backwards(const Tensor& x, const Tensor& h, const Tensor& dy,
                         const Tensor& in, const Tensor& out) {
  const auto empty = [&](at::IntArrayRef sizes) {
    return at::empty(sizes, x.options().dtype(sum_type(x.scalar_type())));
  };
  const int64_t rows = x.size(0), inner = h.size(1);
  const Gradients to{empty(x.sizes()), empty(in.sizes()), empty({inner}),
                     empty(out.sizes()), empty({out.size(0)})};
  const int64_t ranges = ranges_of_rows(rows, in.numel());
  const RangeSums in_w(to.in_weight, ranges), in_b(to.in_bias, ranges),
      out_w(to.out_weight, ranges), out_b(to.out_bias, ranges);
  const int64_t step = rows_at_once(inner), most = std::min(rows, step);
  const Tensor ones = at::ones({1, most}, x.options());
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, x.scalar_type(), kOp, [&] {
    using T = scalar_t;
    using Sum = SumOf<T>;
    const auto add_weights = [&](MatView<const T> d, MatView<const T> from, Sum* weight,
                                 Sum* bias, bool add) {
      multiply(d.transposed(), from, add, {weight, d.cols, from.cols, from.cols, 1});
      multiply(matrix_view<const T>(ones).columns(0, d.rows), d, add,
               {bias, 1, d.cols, d.cols, 1});
    };
    at::parallel_for(0, ranges, 1, [&](int64_t first_range, int64_t last_range) {
      const Between<T> of_g(most * inner), of_dh(most * inner);
      for (int64_t r = first_range; r < last_range; ++r) {
        const int64_t first = rows * r / ranges, last = rows * (r + 1) / ranges;
        for (int64_t begin = first; begin < last; begin += step) {
          const int64_t end = std::min(last, begin + step), count = end - begin;
          const auto up = matrix_view<const T>(dy).slice(begin, end);
          const auto from = matrix_view<const T>(x).slice(begin, end);
          const T* const kept = h.data_ptr<T>() + begin * inner;
          multiply(up, matrix_view<const T>(out), false,
                   {of_dh.sums(), count, inner, inner, 1});
          kernels::gelu_gradient<Sum>(of_g.again(kept, count * inner), of_dh.sums(),
                                      count * inner, of_g.sums(), of_dh.sums());
          const MatView<const T> g{of_g.factors(count * inner), count, inner, inner, 1};
          const MatView<const T> dh{of_dh.factors(count * inner), count, inner, inner,
                                    1};
          add_weights(up, g, out_w.of<Sum>(r), out_b.of<Sum>(r), begin > first);
          add_weights(dh, from, in_w.of<Sum>(r), in_b.of<Sum>(r), begin > first);
          multiply(dh, matrix_view<const T>(in), false,
                   matrix_view<Sum>(to.rows).slice(begin, end));
        }
      }
    });
  });
  for (const RangeSums* sums : {&in_w, &in_b, &out_w, &out_b}) sums->add_up();
  return to;
}

struct FeedForwardFunction : torch::autograd::Function<FeedForwardFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& in_weight,
                        const Tensor& in_bias, const Tensor& out_weight,
                        const Tensor& out_bias, const c10::optional<Tensor>& start,
                        const c10::optional<Tensor>& gain, double eps) {
    ctx->save_for_backward({x, in_weight, out_weight, gain.value_or(Tensor())});
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
    const Tensor &x = saved[0], &gain = saved[3];
    const Tensor h = ctx->saved_data["h"].toTensor();
    const bool residual = ctx->saved_data["residual"].toBool();
    const bool started = ctx->saved_data["started"].toBool() && !residual;
    Gradients to;
    RmsGradients through;
    {
      const at::AutoGradMode off(false);
      const RmsForward norm = normed(x, {gain, ctx->saved_data["eps"].toDouble()});
      const auto factor = [&](const Tensor& t) {
        return t.to(h.scalar_type()).contiguous();
      };
      to = both_backwards(factor(dense_rows(norm.y)), h, factor(dense_rows(grads[0])),
                          factor(saved[1]), factor(saved[2]));
      through.x = to.rows.view(x.sizes());
      const Tensor past = residual ? grads[0].contiguous() : Tensor();
      if (gain.defined())
        through = rms_backward(x.contiguous(), gain.contiguous(), norm.inv_size,
                               through.x, past);
      else if (residual)
        through.x += past;
    }
    return once_differentiable(
        kOp, {x, saved[1], saved[2], gain, grads[0]},
        {through.x, to.in_weight, to.in_bias, to.out_weight, to.out_bias,
         started ? grads[0] : Tensor(), through.gain, Tensor()});
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
    const Tensor rows = norm.gain.defined() ? rms_norm(x, norm.gain, norm.eps) : x;
    return dense(at::gelu(dense(rows, in.weight, in.bias)), out.weight, out.bias,
                 start);
  }
  const auto optional = [](const Tensor& t) {
    return t.defined() ? c10::optional<Tensor>(t) : c10::nullopt;
  };
  return recorded("lagwise::feed_forward", x, in.weight, [&] {
    if (!wants_graph({x, in.weight, in.bias, out.weight, out.bias, start, norm.gain}))
      return plain(x, in, out, start, norm).second;
    return FeedForwardFunction::apply(x, in.weight, in.bias, out.weight, out.bias,
                                      optional(start), optional(norm.gain), norm.eps);
  });
}

}  // namespace lagwise::ops
