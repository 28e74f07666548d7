#pragma once

#include <ATen/ATen.h>

#include "lagwise/ops/toeplitz_linear.h"

/// Test support: linear attention with a factor for every lag.
namespace lagwise::testing {

inline at::Tensor elu1(const at::Tensor& x) {
  return at::where(x.gt(0), x + 1, x.clamp_max(0).exp());
}

/// Features q [B, H, N, D] of the last N rows over features k and values v of all M,
/// with the factor exp(lag_bias [H, N+M-1]) for each lag. Causal: pair by pair over the
/// past.
inline at::Tensor weigh_lags(const at::Tensor& q, const at::Tensor& k,
                             const at::Tensor& v, const at::Tensor& lag_bias,
                             bool causal) {
  if (!causal) return ops::toeplitz_linear(q, k, v, lag_bias);
  const int64_t n = q.size(2), m = k.size(2);
  const at::Tensor column =
      at::arange(n, at::kLong).unsqueeze(1) - at::arange(m, at::kLong) + (m - 1);
  const at::Tensor factor = lag_bias.index_select(1, column.reshape(-1)).exp();
  const at::Tensor weight =
      (at::matmul(q, k.transpose(2, 3)) * factor.view({lag_bias.size(0), n, m}))
          .tril(m - n);
  return at::matmul(weight, v) / (weight.sum(-1, true) + 1e-6);
}

}  // namespace lagwise::testing
