#include "bench/materialised_spe.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <numbers>

namespace lagwise::bench {
namespace {

using at::Tensor;

/// cos and sin of the phases, one after the other for each sine: [1, H, D, N, 2K]
Tensor waves(const Tensor& phase) {
  return at::stack({phase.cos(), phase.sin()}, -1).flatten(-2).unsqueeze(0);
}

/// sum_d x_d (code gated)_d: [B, H, N, R]
Tensor filtered(const Tensor& x, Tensor code, const Tensor& gate, const Tensor& eps) {
  if (gate.defined()) {
    const Tensor g = at::sigmoid(gate).unsqueeze(2);  // [H, D, 1]
    code = (1 - g).sqrt() * code + g.sqrt() * eps;
  }
  const Tensor rows = x.permute({0, 2, 1, 3}).unsqueeze(4);  // [B, N, H, D, 1]
  return (rows * code).sum(3).permute({0, 2, 1, 3});
}

/// (R D)^(1/4)
double root(int64_t realizations, int64_t dim) {
  return std::pow(static_cast<double>(realizations * dim), 0.25);
}

}  // namespace

MaterialisedCodes materialised_codes(const MaterialisedSpe& parameters, int64_t n,
                                     int64_t realizations, Tensor z) {
  const auto options = parameters.frequencies.options().requires_grad(false);
  const int64_t heads = parameters.frequencies.size(0);
  const int64_t dim = parameters.frequencies.size(1);
  const int64_t sines = parameters.frequencies.size(2);
  if (!z.defined()) z = at::randn({1, heads, dim, 2 * sines, realizations}, options);

  const Tensor f = at::sigmoid(parameters.frequencies).unsqueeze(2) / 2;
  const Tensor at = at::arange(n, options).view({1, 1, n, 1});
  const Tensor phase = f * at * (2 * std::numbers::pi);  // [H, D, N, K]
  const Tensor omega_q = waves(phase + parameters.offsets.unsqueeze(2));
  const Tensor omega_k = waves(phase);

  // Each gain serves a cosine and a sine. [H, D, 2K, 1]
  const Tensor gain =
      at::softplus(parameters.gains).repeat_interleave(2, 2).unsqueeze(3);
  z = z * gain /
      (std::sqrt(2.0 * static_cast<double>(sines)) * root(realizations, dim));
  const auto codes = [&](const Tensor& omega) {  // [1, N, H, D, R]
    return at::matmul(omega, z).permute({0, 3, 1, 2, 4});
  };
  return {codes(omega_q), codes(omega_k)};
}

std::pair<Tensor, Tensor> materialised_filter(const Tensor& q, const Tensor& k,
                                              const MaterialisedCodes& codes,
                                              const Tensor& gate, Tensor eps) {
  const int64_t heads = q.size(1), dim = q.size(3), width = codes.queries.size(4);
  if (gate.defined()) {
    if (!eps.defined()) eps = at::randn({heads, dim, width}, q.options());
    eps = eps / root(width, dim);
  }
  return {filtered(q, codes.queries, gate, eps), filtered(k, codes.keys, gate, eps)};
}

std::pair<Tensor, Tensor> materialised_spe(const Tensor& q, const Tensor& k,
                                           const MaterialisedSpe& parameters,
                                           int64_t realizations, Tensor z, Tensor eps) {
  const MaterialisedCodes codes =
      materialised_codes(parameters, q.size(2), realizations, z);
  return materialised_filter(q, k, codes, parameters.gate, eps);
}

}  // namespace lagwise::bench
