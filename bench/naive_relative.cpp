#include "bench/naive_relative.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>

namespace lagwise::bench {

at::Tensor naive_biased(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const at::Tensor& bias, double scale) {
  at::Tensor scores = at::matmul(q * scale, k.transpose(-1, -2));
  scores.add_(bias);
  return at::matmul(at::softmax(scores, -1), v);
}

at::Tensor spread_bias(const at::Tensor& lag_bias) {
  const int64_t n = (lag_bias.size(1) + 1) / 2;
  const at::Tensor row = at::arange(n, at::kLong);
  const at::Tensor index = row.unsqueeze(1) - row + (n - 1);
  return lag_bias.index_select(1, index.reshape({-1})).reshape({-1, n, n});
}

at::Tensor skewed_huang(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const at::Tensor& e) {
  const int64_t h = q.size(1), n = q.size(2);
  const at::Tensor query = q[0] * (1.0 / std::sqrt(double(q.size(3))));  // [H, N, D]
  const at::Tensor by_distance = at::matmul(query, e.t());               // [H, N, N]
  const at::Tensor skewed =
      at::constant_pad_nd(by_distance, {1, 0}).reshape({h, n + 1, n}).slice(1, 1);
  // [N, N], -inf above the diagonal: the future, and the junk of the skew.
  const at::Tensor future =
      at::full({n, n}, -std::numeric_limits<double>::infinity(), q.options()).triu(1);
  at::Tensor scores = at::matmul(query, k[0].transpose(1, 2));
  scores.add_(skewed).add_(future);
  return at::matmul(at::softmax(scores, -1), v[0]).unsqueeze(0);
}

}  // namespace lagwise::bench
