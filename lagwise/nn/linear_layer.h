#pragma once

#include <torch/nn/module.h>

#include "lagwise/nn/noise.h"

namespace lagwise::nn {

/// Hands out initial weights. They are decided by the seed and by the order in which
/// they are asked for.
struct Initial {
  uint64_t seed = 0;
  int64_t next = 0;

  at::Tensor normal(at::IntArrayRef sizes, double deviation) {
    return normal_parameter(sizes, deviation, seed, next++);
  }
};

/// y = x W^T + b, with W [out, in] of deviation gain / sqrt(in) at first.
class LinearLayer : public torch::nn::Module {
 public:
  LinearLayer(int64_t in, int64_t out, Initial& initial, double gain = 1.0,
              bool with_bias = true);
  at::Tensor forward(const at::Tensor& x) const;

 private:
  at::Tensor weight_, bias_;
};

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

/// A module that registers trained tensors of an owner that is no module, such as an
/// encoding, under their names.
class Holder : public torch::nn::Module {
 public:
  explicit Holder(const std::vector<std::pair<std::string, at::Tensor>>& parameters);
};

}  // namespace lagwise::nn
