#pragma once

#include <torch/nn/module.h>

#include <string>

#include "lagwise/ops/dense.h"

namespace lagwise::nn {

/// Over the last axis, with a gain: `rms` x / sqrt(mean x^2), `layer` also takes out
/// the mean and adds a bias.
class Norm : public torch::nn::Module {
 public:
  Norm(const std::string& kind, int64_t width);
  at::Tensor forward(const at::Tensor& x) const;
  /// For a layer that norms its input itself; without a gain where it cannot.
  ops::InputNorm before_layer() const;

 private:
  bool centred_;
  at::Tensor weight_, bias_;
};

}  // namespace lagwise::nn
