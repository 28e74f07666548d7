#pragma once

#include <torch/nn/module.h>

#include <string>

namespace lagwise::nn {

/// Over the last axis, with a gain: `rms` x / sqrt(mean x^2), `layer` also takes out
/// the mean and adds a bias.
class Norm : public torch::nn::Module {
 public:
  Norm(const std::string& kind, int64_t width);
  at::Tensor forward(const at::Tensor& x) const;

 private:
  bool centred_;
  at::Tensor weight_, bias_;
};

}  // namespace lagwise::nn
