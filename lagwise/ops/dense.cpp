#include "lagwise/ops/dense.h"

#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <memory>

#include "lagwise/ops/dense_checks.h"
#include "lagwise/ops/dense_passes.h"
#include "lagwise/ops/matrix_product.h"
#include "lagwise/ops/normed_rows.h"
#include "lagwise/ops/parallel/pieces.h"
#include "lagwise/ops/precision.h"
#include "lagwise/ops/torch/once_differentiable.h"
#include "lagwise/ops/torch/recorded.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "dense";

/// The layers as they are multiplied: weights are factors; x, biases and start are sums.
struct Layers {
  Tensor x;  // [rows, I]
  InputNorm norm;
  Tensor start;  // [rows, O] of the first layer, or undefined
  std::vector<DenseWeights> each;

  /// tensors: x, the gain of the norm, start, then weight and bias of each layer; where
  /// there is none, an empty tensor.
  Layers(at::TensorList tensors, double eps, Precision precision)
      : x(dense_rows(tensors[0])), norm{or_none(tensors[1]), eps} {
    if (tensors[2].numel() > 0) start = dense_rows(tensors[2]);
    for (size_t i = kFirst; i < tensors.size(); i += 2)
      each.push_back(
          {in_precision(tensors[i], precision).contiguous(), or_none(tensors[i + 1])});
  }
  int64_t weights() const {
    int64_t sum = 0;
    for (const DenseWeights& layer : each) sum += layer.weight.numel();
    return sum;
  }
  at::ScalarType factors() const { return each[0].weight.scalar_type(); }

  static constexpr size_t kFirst = 3;  ///< place of the first weight

 private:
  static Tensor or_none(const Tensor& t) {
    return t.numel() > 0 ? t.contiguous() : Tensor();
  }
};

std::vector<Tensor> listed(const Tensor& x, const std::vector<DenseWeights>& layers,
                           const InputNorm& norm, const Tensor& start) {
  const Tensor none = at::empty({0}, x.options().requires_grad(false));
  const auto or_empty = [&](const Tensor& t) { return t.defined() ? t : none; };
  std::vector<Tensor> tensors = {x, or_empty(norm.gain), or_empty(start)};
  for (const DenseWeights& layer : layers) {
    tensors.push_back(layer.weight);
    tensors.push_back(or_empty(layer.bias));
  }
  return tensors;
}

/// y = norm(x) W^T + b of each layer, the first added to start; in the shape of x.
variable_list each_forward(at::TensorList tensors, double eps) {
  const Layers l(tensors, eps, precision());
  const int64_t rows = l.x.size(0), step = rows_at_once(l.weights());
  variable_list y;
  for (const DenseWeights& layer : l.each)
    y.push_back(at::empty({rows, layer.weight.size(0)}, l.x.options()));
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, l.factors(), kOp, [&] {
    using Sum = SumOf<scalar_t>;
    in_pieces(rows, kDenseRows, [&](int64_t first, int64_t last) {
      const NormedRows<scalar_t> x(l.x, l.norm, std::min(step, last - first));
      for (int64_t begin = first; begin < last; begin += step) {
        const int64_t end = std::min(last, begin + step);
        const auto block = x.block(begin, end);
        for (size_t i = 0; i < y.size(); ++i) {
          MatView<const Sum> add{};
          if (i == 0 && l.start.defined())
            add = matrix_view<const Sum>(l.start).slice(begin, end);
          dense_some_rows<scalar_t>(block, l.each[i].weight, l.each[i].bias, add,
                                    matrix_view<Sum>(y[i]).slice(begin, end));
        }
      }
    });
  });
  auto sizes = tensors[0].sizes().vec();
  for (Tensor& one : y) {
    sizes.back() = one.size(1);
    one = one.view(sizes);
  }
  return y;
}

/// The gradients that are wanted; the others stay undefined.
struct Gradients {
  Tensor x;     // [rows, I]
  Tensor gain;  // like that of the norm
  std::vector<DenseWeights> each;
};

/// Fills them from dy [rows, O] of each layer (as factors; undefined: 0). Ranges of rows
/// each sum for themselves; within one some rows at a time, with n = norm(x):
///
///     dW_l += dy_l^T n     dn = sum over l of dy_l W_l     dx from dn and `past`
void each_backward(const Layers& l, const variable_list& dy, const Tensor& past,
                   const Gradients& to) {
  const int64_t rows = l.x.size(0), inputs = l.x.size(1);
  const int64_t ranges = ranges_of_rows(rows, l.weights());
  const RangeSums gains(to.gain, ranges, true);
  std::vector<RangeSums> w, b;
  for (const DenseWeights& layer : to.each)
    w.emplace_back(layer.weight, ranges), b.emplace_back(layer.bias, ranges);
  const int64_t step = rows_at_once(l.weights()), most = std::min(rows, step);
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, l.factors(), kOp, [&] {
    using T = scalar_t;
    using Sum = SumOf<T>;
    const Tensor ones = at::ones({1, most}, l.each[0].weight.options());
    const auto view = [](Sum* data, int64_t count, int64_t width) {
      return MatView<Sum>{data, count, width, width, 1};
    };
    at::parallel_for(0, ranges, 1, [&](int64_t first_range, int64_t last_range) {
      const NormedRows<T> x(l.x, l.norm, most);
      const auto dn = std::make_unique_for_overwrite<Sum[]>(size_t(most * inputs));
      for (int64_t r = first_range; r < last_range; ++r) {
        const int64_t first = rows * r / ranges, last = rows * (r + 1) / ranges;
        for (int64_t begin = first; begin < last; begin += step) {
          const int64_t end = std::min(last, begin + step), count = end - begin;
          const auto block = x.block(begin, end);
          const auto d_block = view(dn.get(), count, inputs);
          bool add = false;  // to dn
          for (size_t i = 0; i < dy.size(); ++i) {
            if (!dy[i].defined()) continue;
            const auto up = matrix_view<const T>(dy[i]).slice(begin, end);
            if (Sum* const sum = w[i].of<Sum>(r))
              multiply(up.transposed(), block, begin > first,
                       view(sum, up.cols, inputs));
            if (Sum* const sum = b[i].of<Sum>(r))
              sum_over_rows<T>(up, ones, begin > first, sum);
            if (to.x.defined())
              multiply(up, matrix_view<const T>(l.each[i].weight), add, d_block);
            add = true;
          }
          if (to.x.defined())
            x.block_gradient(begin, end, dn.get(), past, to.x, gains.of<Sum>(r));
        }
      }
    });
  });
  gains.add_up();
  for (size_t i = 0; i < w.size(); ++i) w[i].add_up(), b[i].add_up();
}

/// tensors: as of Layers. Gives y of each layer, then x itself.
struct DenseFunction : torch::autograd::Function<DenseFunction> {
  static variable_list forward(AutogradContext* ctx, at::TensorList tensors,
                               double eps) {
    variable_list saved = tensors.vec();
    ctx->saved_data["started"] = saved[2].numel() > 0;
    saved[2] = at::empty({0}, saved[2].options().requires_grad(false));  // not needed
    ctx->save_for_backward(saved);
    ctx->saved_data["eps"] = eps;
    ctx->saved_data["short"] = precision() == Precision::bf16;
    ctx->set_materialize_grads(false);
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    variable_list results = each_forward(tensors, eps);
    results.push_back(tensors[0]);
    return results;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& x = saved[0];
    variable_list results(saved.size() + 1);
    {
      const at::AutoGradMode off(false);
      const auto precision =
          ctx->saved_data["short"].toBool() ? Precision::bf16 : Precision::full;
      const Layers layers(saved, ctx->saved_data["eps"].toDouble(), precision);
      const auto like = [&](const Tensor& t, bool wanted) {
        return wanted ? at::empty(t.sizes(), t.options()) : Tensor();
      };
      variable_list dy;
      Gradients to;
      bool any = false;
      for (size_t i = 0; i < layers.each.size(); ++i) {
        const size_t at = Layers::kFirst + 2 * i;
        const bool here = grads[i].defined();
        any = any || here;
        dy.push_back(here ? in_precision(dense_rows(grads[i]), precision) : Tensor());
        to.each.push_back({like(saved[at], here && ctx->needs_input_grad(at)),
                           like(saved[at + 1], here && saved[at + 1].numel() > 0 &&
                                                   ctx->needs_input_grad(at + 1))});
        results[at] = to.each[i].weight, results[at + 1] = to.each[i].bias;
      }
      const Tensor past = grads.back().defined() ? dense_rows(grads.back()) : Tensor();
      const bool norms = layers.norm.gain.defined();
      const bool wants_gain = norms && ctx->needs_input_grad(1);
      to.x = like(layers.x, any && (ctx->needs_input_grad(0) || wants_gain));
      if (norms && to.x.defined()) to.gain = like(layers.norm.gain, true);
      if (any) each_backward(layers, dy, past, to);
      const Tensor dx = any ? to.x : past;
      results[0] = dx.defined() ? dx.view(x.sizes()) : Tensor();
      results[1] = to.gain;
      if (ctx->saved_data["started"].toBool()) results[2] = grads[0];
    }
    variable_list inputs = saved;
    inputs.insert(inputs.end(), grads.begin(), grads.end());
    return once_differentiable(kOp, inputs, results);
  }
};

}  // namespace

Tensor dense(const Tensor& x, const Tensor& weight, const Tensor& bias,
             const Tensor& start, const InputNorm& norm) {
  check_dense(kOp, x, {weight, bias}, start);
  check_norm(kOp, x, norm);
  if (x.numel() == 0) {
    const Tensor y =
        bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
    return start.defined() ? y + start : y;
  }
  return recorded("lagwise::dense", x, weight, [&] {
    const std::vector<Tensor> tensors = listed(x, {{weight, bias}}, norm, start);
    if (!wants_graph(tensors)) return each_forward(tensors, norm.eps)[0];
    return DenseFunction::apply(at::TensorList(tensors), norm.eps)[0];
  });
}

DenseEach dense_each(const Tensor& x, const std::vector<DenseWeights>& layers,
                     const InputNorm& norm) {
  check_norm(kOp, x, norm);
  for (const DenseWeights& layer : layers) check_dense(kOp, x, layer, {});
  DenseEach results;
  results.x = x;
  if (x.numel() == 0) {
    for (const DenseWeights& layer : layers)
      results.y.push_back(dense(x, layer.weight, layer.bias));
    return results;
  }
  const std::vector<Tensor> tensors = listed(x, layers, norm, {});
  variable_list all;
  if (wants_graph(tensors)) {
    all = DenseFunction::apply(at::TensorList(tensors), norm.eps);
    results.x = all.back();
  } else {
    all = each_forward(tensors, norm.eps);
  }
  for (size_t i = 0; i < layers.size(); ++i)
    results.y.push_back(
        recorded("lagwise::dense", x, layers[i].weight, [&] { return all[i]; }));
  return results;
}

}  // namespace lagwise::ops
