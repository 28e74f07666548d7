#pragma once

#include "lagwise/nn/parameters.h"
#include "lagwise/ops/dense.h"

namespace lagwise::nn {

/// y = x W^T + b, with W [out, in] of deviation gain / sqrt(in) at first.
class LinearLayer : public torch::nn::Module {
 public:
  LinearLayer(int64_t in, int64_t out, Initial& initial, double gain = 1.0,
              bool with_bias = true);
  /// With `start`, what the layer is added to.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& start = {}) const;
  ops::DenseWeights weights() const { return {weight_, bias_}; }

 private:
  at::Tensor weight_, bias_;
};

}  // namespace lagwise::nn
