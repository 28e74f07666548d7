#include "lagwise/nn/linear_layer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/layer_norm.h>

#include <cmath>
#include <stdexcept>

#include "lagwise/ops/dense.h"
#include "lagwise/ops/rms_norm.h"

namespace lagwise::nn {
namespace {

constexpr double kEps = 1e-5;

}  // namespace

LinearLayer::LinearLayer(int64_t in, int64_t out, Initial& initial, double gain,
                         bool with_bias)
    : weight_(register_parameter(
          "weight",
          initial.normal({out, in}, gain / std::sqrt(static_cast<double>(in))))) {
  if (with_bias) bias_ = register_parameter("bias", constant_parameter({out}, 0));
}

at::Tensor LinearLayer::forward(const at::Tensor& x) const {
  return ops::dense(x, weight_, bias_);
}

Norm::Norm(const std::string& kind, int64_t width)
    : centred_(kind == "layer"),
      weight_(register_parameter("weight", constant_parameter({width}, 1))) {
  if (kind != "layer" && kind != "rms")
    throw std::invalid_argument("expected norm one of rms, layer, got '" + kind + "'");
  if (centred_) bias_ = register_parameter("bias", constant_parameter({width}, 0));
}

at::Tensor Norm::forward(const at::Tensor& x) const {
  if (centred_) return at::layer_norm(x, {x.size(-1)}, weight_, bias_, kEps);
  return ops::rms_norm(x, weight_, kEps);
}

Holder::Holder(const std::vector<std::pair<std::string, at::Tensor>>& parameters) {
  for (const auto& [name, tensor] : parameters) register_parameter(name, tensor);
}

}  // namespace lagwise::nn
