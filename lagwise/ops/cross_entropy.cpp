#include "lagwise/ops/cross_entropy.h"

#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <atomic>

#include "lagwise/kernels/softmax_loss.h"
#include "lagwise/ops/dense_passes.h"
#include "lagwise/ops/parallel/pieces.h"
#include "lagwise/ops/torch/once_differentiable.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "cross_entropy";

void check(const Tensor& scores, const Tensor& targets) {
  const auto type = scores.scalar_type();
  TORCH_CHECK(type == at::kFloat || type == at::kDouble, kOp,
              ": expected scores of Float or Double, got ", type);
  TORCH_CHECK(targets.scalar_type() == at::kLong, kOp,
              ": expected targets of Long, got ", targets.scalar_type());
  TORCH_CHECK(
      scores.dim() >= 1 && scores.sizes().slice(0, scores.dim() - 1) == targets.sizes(),
      kOp, ": expected scores [.., V] and targets [..], got ", scores.sizes(), " and ",
      targets.sizes());
  TORCH_CHECK(targets.numel() == 0 || targets.max().item<int64_t>() < scores.size(-1),
              kOp, ": expected targets below V = ", scores.size(-1), ", got ",
              targets.max().item<int64_t>());
}

struct Pass {
  Tensor each;      // [rows]
  Tensor gradient;  // [rows, V], if wanted
  int64_t right = 0;
};

Pass pass_over(const Tensor& scores, const Tensor& targets, bool wants_gradient) {
  const Tensor x = dense_rows(scores), t = targets.contiguous();
  Pass pass;
  pass.each = at::empty({x.size(0)}, x.options());
  if (wants_gradient) pass.gradient = at::empty(x.sizes(), x.options());
  std::atomic<int64_t> right{0};
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kOp, [&] {
    in_pieces(x.size(0), kDenseRows, [&](int64_t begin, int64_t end) {
      MatView<scalar_t> to{};
      if (wants_gradient) to = matrix_view<scalar_t>(pass.gradient).slice(begin, end);
      right += kernels::softmax_loss<scalar_t>(
          matrix_view<const scalar_t>(x).slice(begin, end),
          t.data_ptr<int64_t>() + begin, pass.each.data_ptr<scalar_t>() + begin, to);
    });
  });
  pass.right = right;
  return pass;
}

/// Gives the sum of losses its gradient, which the pass has computed already and which is
/// all that is kept: the scores may go.
struct SumFunction : torch::autograd::Function<SumFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& scores, const Tensor& sum,
                        const Tensor& gradient) {
    ctx->saved_data["gradient"] = gradient.view(scores.sizes());
    return sum;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const Tensor gradient = ctx->saved_data["gradient"].toTensor();
    const Tensor up = grads[0].detach();
    const bool plain = up.item<double>() == 1;  // the sum itself is what is trained on
    // The gradient depends on scores, which are not here any more: in their place stands
    // something that can be differentiated by.
    const Tensor scores = at::empty({0}, gradient.options()).set_requires_grad(true);
    return once_differentiable(kOp, {scores, grads[0]},
                               {plain ? gradient : gradient * up, Tensor(), Tensor()});
  }
};

}  // namespace

CrossEntropy cross_entropy(const Tensor& scores, const Tensor& targets) {
  check(scores, targets);
  const bool graph = at::GradMode::is_enabled() && scores.requires_grad();
  CrossEntropy result;
  if (scores.numel() == 0) {
    result.sum = scores.sum();
    result.each = at::empty(targets.sizes(), scores.options().requires_grad(false));
    result.each.zero_();
    return result;
  }
  const Pass pass = [&] {
    const at::NoGradGuard no_graph;
    return pass_over(scores.detach(), targets, graph);
  }();
  result.each = pass.each.view(targets.sizes());
  result.right = pass.right;
  const Tensor sum = pass.each.sum();
  result.sum = graph ? SumFunction::apply(scores, sum, pass.gradient) : sum;
  return result;
}

}  // namespace lagwise::ops
