#include "lagwise/nn/gates.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>

#include <cmath>

#include "lagwise/nn/parameters.h"
#include "lagwise/ops/dense.h"
#include "lagwise/ops/precision.h"

namespace lagwise::nn {
namespace {

/// rho of each head, [H].
at::Tensor first_rates(int64_t heads, const MemoryOptions& options) {
  const double from = std::log(options.shortest_clock);
  const double to = std::log(options.longest_clock);
  at::Tensor rho = at::empty({heads}, at::kFloat);
  for (int64_t h = 0; h < heads; ++h) {
    const double share =
        heads > 1 ? static_cast<double>(h) / static_cast<double>(heads - 1) : 0.5;
    rho.data_ptr<float>()[h] = static_cast<float>(-(from + share * (to - from)));
  }
  return rho;
}

}  // namespace

ForgetGate::ForgetGate(int64_t dim, int64_t heads, const MemoryOptions& options) {
  const double one = std::log(std::expm1(1.0));  // softplus(one) = 1
  weight_ = register_parameter("weight", constant_parameter({heads, dim}, 0));
  beta_ = register_parameter("beta", constant_parameter({heads}, one));
  rho_ = register_parameter("rho", first_rates(heads, options));
}

// Gates are few numbers that act over thousands of tokens: never in bf16.

at::Tensor ForgetGate::forward(const at::Tensor& x) const {
  const ops::WithPrecision full(ops::Precision::full);
  const at::Tensor gate = at::softplus(ops::dense(x, weight_, beta_));  // [B, N, H]
  return (-rho_.exp() * gate).transpose(1, 2);
}

WriteGate::WriteGate(int64_t dim, int64_t heads)
    : weight_(register_parameter("weight", constant_parameter({heads, dim}, 0))) {}

at::Tensor WriteGate::forward(const at::Tensor& x) const {
  const ops::WithPrecision full(ops::Precision::full);
  return at::sigmoid(ops::dense(x, weight_)).transpose(1, 2);
}

}  // namespace lagwise::nn
