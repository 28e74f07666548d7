#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

#include "lagwise/ops/exact_attention.h"

/// Test support: the definition of exact attention with its N x M matrix. The tests
/// call it in double; its gradients are autograd's. In f32 it is plain torch.
namespace lagwise::ops::reference {

/// True where row i may see key j, [B, 1, N, M].
inline at::Tensor visible(const at::Tensor& q, const at::Tensor& k,
                          const ExactOptions& options) {
  const int64_t b = q.size(0), n = q.size(2), m = k.size(2);
  const at::Tensor row = at::arange(n, at::kLong).unsqueeze(1);
  const at::Tensor key = at::arange(m, at::kLong).unsqueeze(0);
  const int64_t start = options.query_start.value_or(options.key_start + m - n);
  const at::Tensor lag = row - key + (start - options.key_start);
  at::Tensor seen = at::ones({b, 1, n, m}, at::kBool);
  if (options.causal) seen = seen.logical_and(lag.ge(0));
  if (options.window) seen = seen.logical_and(lag.abs().lt(*options.window));
  if (options.lengths.defined()) {
    const at::Tensor length = options.lengths.to(at::kLong).reshape({b, 1, 1, 1});
    seen = seen.logical_and(key.lt(length));
    if (n == m) seen = seen.logical_and(row.lt(length));
  }
  if (options.cu_seqlens.defined()) {
    const at::Tensor ends = options.cu_seqlens.to(at::kLong);
    const auto sequence = [&](const at::Tensor& at) {  // how many begin at or before
      return ends.reshape({-1, 1, 1}).le(at).to(at::kLong).sum(0);
    };
    seen = seen.logical_and(sequence(row).eq(sequence(key)));
  }
  return seen;
}

/// The table entry of each pair, i - j + M - 1, [B, H, N, M].
inline at::Tensor lag_index(const at::Tensor& q, int64_t m) {
  const int64_t n = q.size(2);
  const at::Tensor index = at::arange(n, at::kLong).unsqueeze(1) -
                           at::arange(m, at::kLong).unsqueeze(0) + (m - 1);
  return index.expand({q.size(0), q.size(1), n, m});
}

inline at::Tensor exact_attention(const at::Tensor& q, const at::Tensor& k,
                                  const at::Tensor& v, const ExactOptions& options) {
  const int64_t n = q.size(2), m = k.size(2);
  const double scale = options.scale.value_or(1.0 / std::sqrt(double(q.size(3))));
  const at::Tensor index = lag_index(q, m);
  at::Tensor scores = at::matmul(q * scale, k.transpose(-1, -2));
  if (options.lag_keys.defined())
    scores = scores +
             at::matmul(q * scale, options.lag_keys.transpose(-1, -2)).gather(3, index);
  if (options.lag_bias.defined()) {
    const int64_t lags = options.lag_bias.size(1);
    scores = scores + options.lag_bias.unsqueeze(1)
                          .expand({q.size(0), q.size(1), n, lags})
                          .gather(3, index);
  }
  const at::Tensor hidden = visible(q, k, options).logical_not();
  const at::Tensor blind = hidden.all(-1, true);
  scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity())
               .masked_fill(blind, 0);
  const at::Tensor weights = at::softmax(scores, -1).masked_fill(hidden, 0);
  at::Tensor out = at::matmul(weights, v);
  if (options.lag_values.defined()) {
    const at::Tensor none =
        at::zeros({q.size(0), q.size(1), n, options.lag_values.size(1)}, q.options());
    out = out + at::matmul(none.scatter(3, index, weights), options.lag_values);
  }
  return out;
}

}  // namespace lagwise::ops::reference
