#include "bench/naive_exact.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>

namespace lagwise::bench {
namespace {

double inverse_root(int64_t width) { return 1.0 / std::sqrt(double(width)); }

}  // namespace

at::Tensor naive_exact(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const int64_t n = q.size(2);
  // [N, N], true above the diagonal: the future.
  const at::Tensor future = at::ones({n, n}, q.options().dtype(at::kBool)).triu(1);
  at::Tensor scores = at::matmul(q * inverse_root(q.size(3)), k.transpose(-1, -2));
  scores.masked_fill_(future, -std::numeric_limits<double>::infinity());
  return at::matmul(at::softmax(scores, -1), v);
}

at::Tensor naive_exact_step(const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const KeyValueCache& cache,
                            int64_t position) {
  cache.k.select(2, position).copy_(k);
  cache.v.select(2, position).copy_(v);
  const at::Tensor keys = cache.k.narrow(2, 0, position + 1);
  const at::Tensor values = cache.v.narrow(2, 0, position + 1);
  const at::Tensor row = (q * inverse_root(q.size(2))).unsqueeze(2);  // [B, H, 1, D]
  const at::Tensor weights =
      at::softmax(at::matmul(row, keys.transpose(-1, -2)), -1);  // [B, H, 1, N]
  return at::matmul(weights, values).squeeze(2);
}

}  // namespace lagwise::bench
