#include "lagwise/ops/rms_norm.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include "lagwise/ops/rms_norm_passes.h"
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

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, const Tensor& gain_in,
                        double eps) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const Tensor x = x_in.contiguous(), gain = gain_in.contiguous();
    const auto [y, r] = rms_forward(x, gain, eps);
    ctx->save_for_backward({x_in, gain_in});
    ctx->saved_data["inv_size"] = r;
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    RmsGradients found;
    {
      const at::AutoGradMode off(false);
      found =
          rms_backward(saved[0].contiguous(), saved[1].contiguous(),
                       ctx->saved_data["inv_size"].toTensor(), grads[0].contiguous());
    }
    return once_differentiable(kOp, {saved[0], saved[1], grads[0]},
                               {found.x, found.gain, Tensor()});
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  check(x, gain);
  return recorded("lagwise::rms_norm", x, gain,
                  [&] { return RmsNormFunction::apply(x, gain, eps); });
}

}  // namespace lagwise::ops
