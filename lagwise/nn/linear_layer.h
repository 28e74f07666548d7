#pragma once

#include "lagwise/nn/parameters.h"

namespace lagwise::nn {

/// y = x W^T + b, with W [out, in] of deviation gain / sqrt(in) at first.
class LinearLayer : public torch::nn::Module {
 public:
  LinearLayer(int64_t in, int64_t out, Initial& initial, double gain = 1.0,
              bool with_bias = true);
  at::Tensor forward(const at::Tensor& x) const;

 private:
  at::Tensor weight_, bias_;
};

}  // namespace lagwise::nn
