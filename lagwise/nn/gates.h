#pragma once

#include <torch/nn/module.h>

#include "lagwise/attention/memory_options.h"

namespace lagwise::nn {

/// How much of the past each head keeps at each token, as a logarithm:
///
///     l = -e^rho softplus(w . x + beta) <= 0
///
/// At first w = 0 and softplus(beta) = 1, so that a head fades at the fixed rate e^rho
/// per token; the times e^-rho are geometric from head to head. One head has the
/// geometric mean of both ends.
///
/// Parameters  weight [H, C] = w; beta, rho [H], which weight decay leaves alone
class ForgetGate : public torch::nn::Module {
 public:
  ForgetGate(int64_t dim, int64_t heads, const MemoryOptions& options);
  at::Tensor forward(const at::Tensor& x) const;  ///< [B, N, C] -> [B, H, N]

 private:
  at::Tensor weight_, beta_, rho_;
};

/// How much of what its key recalls each token replaces: b = sigmoid(u . x), 1/2 at
/// first, where u = 0.
///
/// Parameters  weight [H, C] = u
class WriteGate : public torch::nn::Module {
 public:
  WriteGate(int64_t dim, int64_t heads);
  at::Tensor forward(const at::Tensor& x) const;  ///< [B, N, C] -> [B, H, N]

 private:
  at::Tensor weight_;
};

}  // namespace lagwise::nn
