#include "lagwise/attention/output_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>

#include <stdexcept>

#include "lagwise/ops/rms_norm.h"

namespace lagwise {
namespace {

/// Rows in the order of their memory: token by token, all heads of each.
at::Tensor rms_head(const at::Tensor& out, const at::Tensor& gain, double eps) {
  return ops::rms_norm(out.transpose(1, 2), gain, eps).transpose(1, 2);
}

at::Tensor layer_concat(const at::Tensor& out, double eps) {
  const int64_t b = out.size(0), h = out.size(1), n = out.size(2), e = out.size(3);
  const at::Tensor heads = out.transpose(1, 2).reshape({b, n, h * e});
  return at::layer_norm(heads, {h * e}, {}, {}, eps).view({b, n, h, e}).transpose(1, 2);
}

}  // namespace

OutputNorm::OutputNorm(Spec& spec, int64_t heads, int64_t value_dim)
    : name_(spec.take_choice("norm", "none", {"none", "rms_head", "layer_concat"})) {
  const bool gain = spec.take("norm_gain", true);
  eps_ = spec.take("norm_eps", 1e-5);
  if (!(eps_ > 0))
    throw std::invalid_argument(spec.name() + ": expected norm_eps > 0, got " +
                                std::to_string(eps_));
  if (gain && name_ != "none")
    gain_ = at::ones({heads, value_dim}, at::kFloat).set_requires_grad(true);
}

at::Tensor OutputNorm::apply(const at::Tensor& out) const {
  if (name_ == "none") return out;
  if (name_ == "rms_head") {
    const at::Tensor gain = gain_.defined() ? gain_.to(out.scalar_type())
                                            : at::ones({out.size(3)}, out.options());
    return rms_head(out, gain, eps_);
  }
  const at::Tensor unit = layer_concat(out, eps_);
  if (!gain_.defined()) return unit;
  return unit * gain_.unsqueeze(1).to(out.scalar_type());  // [H, 1, E]
}

ops::InputNorm OutputNorm::before_layer() const {
  if (name_ != "rms_head") return {};
  return {gain_, eps_};
}

Parameters OutputNorm::parameters() const {
  if (!gain_.defined()) return {};
  return {{"norm_gain", gain_}};
}

}  // namespace lagwise
