#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/diff.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lagwise/ops/exact_attention.h"

/// Test support: the definition of exact attention with its N x M matrix. The tests
/// call it in double; its gradients are autograd's.
namespace lagwise::ops::reference {

/// Positions 0, 1, ... of `count` rows, each within its sequence.
struct Places {
  at::Tensor sequence, row;  ///< [count]
};
inline Places places(int64_t count, const at::Tensor& cuts) {
  const at::Tensor row = at::arange(count, at::kLong);
  if (!cuts.defined()) return {at::zeros_like(row), row};
  const at::Tensor begins = cuts.to(at::kLong);
  // How many begin at or before a row: of two with one beginning, the first is empty.
  const at::Tensor sequence = begins.unsqueeze(1).le(row).to(at::kLong).sum(0) - 1;
  return {sequence, row - begins.index_select(0, sequence)};
}

/// Rows and keys of a call as a column and a row, [N, 1] and [1, M].
struct Pairs {
  Places query, key;
};
inline Pairs pairs(const at::Tensor& q, const at::Tensor& k,
                   const ExactOptions& options) {
  const at::Tensor& cuts = options.cu_seqlens;
  const at::Tensor& key_cuts = options.key_cu_seqlens;
  const Places query = places(q.size(2), cuts);
  const Places key = places(k.size(2), key_cuts.defined() ? key_cuts : cuts);
  return {{query.sequence.unsqueeze(1), query.row.unsqueeze(1)},
          {key.sequence.unsqueeze(0), key.row.unsqueeze(0)}};
}

/// Where row 0 stands, counted from key 0, [B|1, 1, N|1, 1]: one number for all, or
/// that of each sequence.
inline at::Tensor shift(const at::Tensor& q, const at::Tensor& k,
                        const ExactOptions& options, const Pairs& at) {
  const int64_t n = q.size(2), m = k.size(2);
  if (options.query_start)
    return at::full({1, 1, 1, 1}, *options.query_start - options.key_start, at::kLong);
  const at::Tensor &rows = options.lengths, &keys = options.key_lengths;
  if (keys.defined()) {
    const at::Tensor last = keys.to(at::kLong).reshape({-1, 1, 1, 1});
    return rows.defined() ? last - rows.to(at::kLong).reshape({-1, 1, 1, 1}) : last - n;
  }
  if (!options.key_cu_seqlens.defined())
    return at::full({1, 1, 1, 1}, m - n, at::kLong);
  const at::Tensor more = options.key_cu_seqlens.to(at::kLong).diff() -
                          options.cu_seqlens.to(at::kLong).diff();
  return more.index_select(0, at.query.sequence.squeeze(1)).reshape({1, 1, -1, 1});
}

/// True where row i may see key j, [B, 1, N, M].
inline at::Tensor visible(const at::Tensor& q, const at::Tensor& k,
                          const ExactOptions& options) {
  const int64_t b = q.size(0), n = q.size(2), m = k.size(2);
  const auto at = pairs(q, k, options);
  const at::Tensor lag = at.query.row - at.key.row + shift(q, k, options, at);
  at::Tensor seen = at::ones({b, 1, n, m}, at::kBool);
  if (options.causal) seen = seen.logical_and(lag.ge(0));
  if (options.window) seen = seen.logical_and(lag.abs().lt(*options.window));
  const auto before = [&](const at::Tensor& row, const at::Tensor& lengths) {
    return row.lt(lengths.to(at::kLong).reshape({b, 1, 1, 1}));
  };
  const at::Tensor& keys =
      options.key_lengths.defined() ? options.key_lengths : options.lengths;
  if (options.lengths.defined())
    seen = seen.logical_and(before(at.query.row, options.lengths));
  if (keys.defined()) seen = seen.logical_and(before(at.key.row, keys));
  return seen.logical_and(at.query.sequence.eq(at.key.sequence));
}

/// The table entry of each pair, [B, H, N, M]: i - j + M - 1 if starts are given, else
/// (lag) + N - 1. Pairs that belong to no sequence read any.
inline at::Tensor lag_index(const at::Tensor& q, const at::Tensor& k,
                            const ExactOptions& options) {
  const int64_t n = q.size(2), m = k.size(2);
  const auto at = pairs(q, k, options);
  const at::Tensor rows = (at.query.row - at.key.row).reshape({1, 1, n, m});
  const at::Tensor entry =
      options.query_start ? rows + (m - 1) : rows + shift(q, k, options, at) + (n - 1);
  return entry.clamp(0, std::max<int64_t>(0, n + m - 2))
      .expand({q.size(0), q.size(1), n, m});
}

/// scale (q . k + q . lag_keys) + lag_bias + key_bias for every pair, [B, H, N, M].
inline at::Tensor scores(const at::Tensor& q, const at::Tensor& k,
                         const ExactOptions& options) {
  const double scale = options.scale.value_or(1.0 / std::sqrt(double(q.size(3))));
  const at::Tensor index = lag_index(q, k, options);
  at::Tensor all = at::matmul(q * scale, k.transpose(-1, -2));
  if (options.lag_keys.defined())
    all = all +
          at::matmul(q * scale, options.lag_keys.transpose(-1, -2)).gather(3, index);
  if (options.lag_bias.defined())
    all = all + options.lag_bias.unsqueeze(1)
                    .expand({q.size(0), q.size(1), q.size(2), -1})
                    .gather(3, index);
  if (options.key_bias.defined()) all = all + options.key_bias.unsqueeze(2);
  return all;
}

/// Softmax over what a row sees; zeros for a row that sees nothing.
inline at::Tensor weights(const at::Tensor& scores, const at::Tensor& seen) {
  const at::Tensor hidden = seen.logical_not(), blind = hidden.all(-1, true);
  return at::softmax(
             scores.masked_fill(hidden, -std::numeric_limits<double>::infinity())
                 .masked_fill(blind, 0),
             -1)
      .masked_fill(hidden, 0);
}

/// sum_j weights_ij (v_j + lag_values), [B, H, N, E]; `index` as of lag_index.
inline at::Tensor mix(const at::Tensor& weights, const at::Tensor& v,
                      const at::Tensor& lag_values, const at::Tensor& index) {
  const at::Tensor out = at::matmul(weights, v);
  if (!lag_values.defined()) return out;
  const at::Tensor none = at::zeros(
      {v.size(0), v.size(1), weights.size(2), lag_values.size(1)}, v.options());
  return out + at::matmul(none.scatter_add(3, index, weights), lag_values);
}

inline at::Tensor exact_attention(const at::Tensor& q, const at::Tensor& k,
                                  const at::Tensor& v, const ExactOptions& options) {
  return mix(weights(scores(q, k, options), visible(q, k, options)), v,
             options.lag_values, lag_index(q, k, options));
}

}  // namespace lagwise::ops::reference
