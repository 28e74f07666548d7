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

}  // namespace

std::pair<Tensor, Tensor> materialised_spe(const Tensor& q, const Tensor& k,
                                           const MaterialisedSpe& parameters,
                                           int64_t realizations, Tensor z, Tensor eps) {
  const int64_t heads = q.size(1), n = q.size(2), dim = q.size(3);
  const int64_t sines = parameters.frequencies.size(2);
  const double size = static_cast<double>(realizations * dim);
  if (!z.defined())
    z = at::randn({1, heads, dim, 2 * sines, realizations}, q.options());
  if (parameters.gate.defined() && !eps.defined())
    eps = at::randn({heads, dim, realizations}, q.options());

  const Tensor f = at::sigmoid(parameters.frequencies).unsqueeze(2) / 2;
  const Tensor at = at::arange(n, q.options()).view({1, 1, n, 1});
  const Tensor phase = f * at * (2 * std::numbers::pi);  // [H, D, N, K]
  const Tensor omega_q = waves(phase + parameters.offsets.unsqueeze(2));
  const Tensor omega_k = waves(phase);

  // Each gain serves a cosine and a sine. [H, D, 2K, 1]
  const Tensor gain =
      at::softplus(parameters.gains).repeat_interleave(2, 2).unsqueeze(3);
  z = z * gain / (std::sqrt(2.0 * static_cast<double>(sines)) * std::pow(size, 0.25));
  const auto codes = [&](const Tensor& omega) {  // [1, N, H, D, R]
    return at::matmul(omega, z).permute({0, 3, 1, 2, 4});
  };
  if (eps.defined()) eps = eps / std::pow(size, 0.25);
  return {filtered(q, codes(omega_q), parameters.gate, eps),
          filtered(k, codes(omega_k), parameters.gate, eps)};
}

}  // namespace lagwise::bench
