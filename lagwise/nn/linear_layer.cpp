#include "lagwise/nn/linear_layer.h"

#include <cmath>

namespace lagwise::nn {

LinearLayer::LinearLayer(int64_t in, int64_t out, Initial& initial, double gain,
                         bool with_bias)
    : weight_(register_parameter(
          "weight",
          initial.normal({out, in}, gain / std::sqrt(static_cast<double>(in))))) {
  if (with_bias) bias_ = register_parameter("bias", constant_parameter({out}, 0));
}

at::Tensor LinearLayer::forward(const at::Tensor& x, const at::Tensor& start) const {
  return ops::dense(x, weight_, bias_, start);
}

}  // namespace lagwise::nn
