#include "bench/materialised_conv_spe.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sqrt.h>

#include <cmath>

namespace lagwise::bench {
namespace {

using at::Tensor;

/// [N, H, D, R] of noise through one filter.
Tensor code_of(const Tensor& z, const Tensor& kernel, int64_t n, int64_t heads) {
  const int64_t taps = kernel.size(2), r = z.size(0), channels = kernel.size(0);
  const Tensor filtered =
      at::conv1d(z, kernel, Tensor(), at::IntArrayRef({1}), at::IntArrayRef({0}),
                 at::IntArrayRef({1}), channels);
  const Tensor used = filtered.narrow(2, taps, n);  // (R, H D, N)
  const double scale = std::pow(static_cast<double>(r * (channels / heads)), -0.25);
  return used.permute({2, 1, 0}).view({n, heads, channels / heads, r}) * scale;
}

/// sum_d x_{n,d} code_{n,d,r}
Tensor apply(const Tensor& x, const Tensor& code) {
  const Tensor rows = x.transpose(1, 2).unsqueeze(-1);  // [B, N, H, D, 1]
  return (rows * code.unsqueeze(0)).sum(-2).transpose(1, 2);
}

}  // namespace

std::tuple<Tensor, Tensor> materialised_conv_spe(
    const Tensor& q, const Tensor& k, const Tensor& query_kernel,
    const Tensor& key_kernel, const Tensor& gate, int64_t realizations,
    const Tensor& given_z, const Tensor& given_eps) {
  const int64_t heads = q.size(1), n = q.size(2), d = q.size(3);
  const Tensor z =
      given_z.defined()
          ? given_z
          : at::randn({realizations, heads * d, 4 * query_kernel.size(2) + n},
                      q.options());
  Tensor q_code = code_of(z, query_kernel, n, heads);
  Tensor k_code = code_of(z, key_kernel, n, heads);
  if (gate.defined()) {
    const Tensor eps =
        (given_eps.defined() ? given_eps
                             : at::randn({heads, d, realizations}, q.options())) *
        std::pow(static_cast<double>(realizations * d), -0.25);
    const Tensor g = at::sigmoid(gate).unsqueeze(-1);
    const Tensor keep = at::sqrt(1 - g), mixed = at::sqrt(g) * eps;
    q_code = q_code * keep + mixed, k_code = k_code * keep + mixed;
  }
  return {apply(q, q_code), apply(k, k_code)};
}

}  // namespace lagwise::bench
