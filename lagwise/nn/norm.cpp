#include "lagwise/nn/norm.h"

#include <ATen/ops/layer_norm.h>

#include <stdexcept>

#include "lagwise/nn/parameters.h"
#include "lagwise/ops/rms_norm.h"

namespace lagwise::nn {
namespace {

constexpr double kNormEps = 1e-5;

}  // namespace

Norm::Norm(const std::string& kind, int64_t width)
    : centred_(kind == "layer"),
      weight_(register_parameter("weight", constant_parameter({width}, 1))) {
  if (kind != "layer" && kind != "rms")
    throw std::invalid_argument("expected norm one of rms, layer, got '" + kind + "'");
  if (centred_) bias_ = register_parameter("bias", constant_parameter({width}, 0));
}

at::Tensor Norm::forward(const at::Tensor& x) const {
  if (centred_) return at::layer_norm(x, {x.size(-1)}, weight_, bias_, kNormEps);
  return ops::rms_norm(x, weight_, kNormEps);
}

ops::InputNorm Norm::before_layer() const {
  return centred_ ? ops::InputNorm{} : ops::InputNorm{weight_, kNormEps};
}

}  // namespace lagwise::nn
