#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <string>

#include "lagwise/encodings/encoding.h"

namespace lagwise {

/// What the encodings on the score have in common: they speak of lags, and each
/// hands over a table with one entry per lag.

/// The lag of each table entry, int64 [N+M-1]: entry (i - j) + (M - 1) serves query
/// row i and key row j, which stand query_start - key_start + i - j apart.
inline at::Tensor lags_between(const Placement& at, int64_t n, int64_t m) {
  const int64_t first = at.query_start - at.key_start - (m - 1);
  return at::arange(first, first + std::max<int64_t>(0, n + m - 1), at::kLong);
}

/// Refuses explicit positions: a table by lag needs rows that follow one another.
inline void refuse_positions(const char* name, const Placement& at) {
  if (at.query_at.defined() || at.key_at.defined())
    throw std::invalid_argument(std::string(name) +
                                ": expected rows one after another from query_start "
                                "and key_start, got explicit positions");
  if (at.grid.size() > 1 || at.off_grid != 0)
    throw std::invalid_argument(std::string(name) +
                                ": expected a line of rows, got a grid");
}

inline double inverse_root(int64_t width) {
  return 1.0 / std::sqrt(static_cast<double>(width));
}

/// Fresh parameters: standard normal numbers times `spread`, float. `which` numbers the
/// parameters of an encoding, so that each gets numbers of its own.
inline at::Tensor drawn_normal(const HeadShape& shape, int64_t layer, int64_t which,
                               at::IntArrayRef sizes, double spread) {
  at::Tensor x = at::empty(sizes, at::kFloat);
  Noise(shape.seed, streams::kParameters)
      .at({.layer = layer, .feature = which})
      .fill_normal(0, std::span(x.data_ptr<float>(), static_cast<size_t>(x.numel())));
  return x.mul_(spread);
}

/// The same, uniform in (low, high).
inline at::Tensor drawn_uniform(const HeadShape& shape, int64_t layer, int64_t which,
                                at::IntArrayRef sizes, double low, double high) {
  at::Tensor x = at::empty(sizes, at::kFloat);
  Noise(shape.seed, streams::kParameters)
      .at({.layer = layer, .feature = which})
      .fill_uniform(0, std::span(x.data_ptr<float>(), static_cast<size_t>(x.numel())));
  return x.mul_(high - low).add_(low);
}

}  // namespace lagwise
