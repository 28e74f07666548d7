#include "lagwise/encodings/kernel_by_lag.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "lagwise/core/noise.h"

namespace lagwise {
namespace {

/// i - j + (M - 1): the column of a lag table. [N, M]
at::Tensor lag_columns(const at::Tensor& q, const at::Tensor& k) {
  const int64_t n = q.size(2), m = k.size(2);
  return at::arange(n, at::kLong).unsqueeze(1) - at::arange(m, at::kLong) + (m - 1);
}

/// Rows of a table by lag, [1|H, N+M-1, ..] -> [1|H, N, M, ..].
at::Tensor by_pair(const at::Tensor& table, const at::Tensor& columns) {
  std::vector<int64_t> sizes = {table.size(0), columns.size(0), columns.size(1)};
  for (int64_t a = 2; a < table.dim(); ++a) sizes.push_back(table.size(a));
  return table.index_select(1, columns.reshape(-1)).reshape(sizes);
}

at::Tensor faded(const Encoded& e, int64_t start) {
  const at::Tensor i = at::arange(e.q.size(2), e.q.options()).unsqueeze(1);
  const at::Tensor lag = i - at::arange(e.k.size(2), e.q.options()) + start;  // [N, M]
  const at::Tensor seen = lag.ge(0).to(e.q.scalar_type());
  const at::Tensor steps = lag.clamp_min(0);
  if (e.decay.dim() == 1) {
    const at::Tensor power = (e.decay.view({-1, 1, 1}) * steps).exp();
    return at::matmul(e.q, e.k.transpose(-1, -2)) * power * seen;
  }
  const at::Tensor power =
      (e.decay.view({e.decay.size(0), 1, 1, -1}) * steps.unsqueeze(-1)).exp();
  return (e.q.unsqueeze(3) * e.k.unsqueeze(2) * power).sum(-1) * seen;
}

}  // namespace

at::Tensor pair_scores(const Encoded& e, int64_t start) {
  if (e.decay.defined() && !e.lag_bias.defined()) return faded(e, start);
  at::Tensor products = at::matmul(e.q, e.k.transpose(-1, -2));
  const at::Tensor columns = lag_columns(e.q, e.k);
  if (e.lag_keys.defined())
    products = products + (e.q.unsqueeze(3) * by_pair(e.lag_keys, columns)).sum(-1);
  products = products * e.scale;
  return e.lag_bias.defined() ? products + by_pair(e.lag_bias, columns) : products;
}

at::Tensor kernel_by_pair(Encoding& encoding, int64_t queries, int64_t keys,
                          const Draw& draw, const Layer& layer, int64_t horizon) {
  const HeadShape& shape = encoding.shape();
  Placement at;
  at.horizon = horizon;
  const double size = std::sqrt(double(shape.dim));
  const at::Tensor one = at::empty({shape.dim}, at::kDouble);
  const NoiseRow noise = Noise(1).at({});
  for (int64_t d = 0; d < shape.dim; ++d)
    one.data_ptr<double>()[d] = noise.sign(d) / size;
  const auto rows = [&](int64_t n) {
    return one.expand({1, shape.heads, n, shape.dim});
  };
  Encoded encoded = encode_once(encoding, rows(queries), rows(keys), at, draw, &layer);
  const bool fades = encoded.decay.defined();
  if (fades) encoded.lag_bias = at::Tensor();  // the same for exact attention
  const at::Tensor scores =  // [H, queries, keys]; those that fade are not scaled yet
      pair_scores(encoded).select(0, 0) * (fades ? encoded.scale * size : size);

  const at::Tensor x =
      at::zeros({1, std::max(queries, keys), shape.model_width()}, at::kDouble);
  const at::Tensor e = encoding.embed(x, at).squeeze(0);  // [positions, C]
  if (!e.ne(0).any().item<bool>()) return scores;
  const at::Tensor product =
      at::matmul(e.slice(0, 0, queries), e.slice(0, 0, keys).t());
  return product / product[0][0] * scores;
}

at::Tensor kernel_by_lag(Encoding& encoding, int64_t lags, const Draw& draw,
                         const Layer& layer, int64_t horizon) {
  return kernel_by_pair(encoding, lags, 1, draw, layer, horizon).squeeze(2);
}

}  // namespace lagwise
