#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lagwise/kernels/exact_attention.h"
#include "lagwise/ops/exact/exact_call.h"

namespace lagwise::ops {

/// Rows [begin, begin + count) of one batch row and head of a dense [B, H, X, width].
template <class T>
MatView<T> rows_of(const at::Tensor& x, const ExactPiece& piece, int64_t begin,
                   int64_t count) {
  const int64_t width = x.size(3), head = piece.batch * x.size(1) + piece.head;
  auto* data = static_cast<T*>(x.data_ptr()) + (head * x.size(2) + begin) * width;
  return {data, count, width, width, 1};
}

/// The entries of a dense table [1|H, L, width] that a piece can reach.
template <class T>
MatView<const T> table_of(const at::Tensor& x, const ExactPiece& piece) {
  if (!x.defined()) return {};
  const int64_t width = x.size(2), head = x.size(0) == 1 ? 0 : piece.head;
  return {x.data_ptr<T>() + (head * x.size(1) + piece.first_lag) * width,
          piece.rows + piece.keys - 1, width, width, 1};
}

/// A piece as the kernels see it.
template <class T>
kernels::ExactHead<T> head_of(const ExactCall& call, const ExactPiece& piece) {
  kernels::ExactHead<T> head{
      .q = rows_of<const T>(call.q, piece, piece.row, piece.rows),
      .k = rows_of<const T>(call.k, piece, piece.key, piece.keys),
      .v = rows_of<const T>(call.v, piece, piece.key, piece.keys)};
  head.scale = static_cast<T>(call.scale);
  head.sight = {call.causal, piece.shift, call.window};
  head.lag_bias = table_of<T>(call.lag_bias, piece);
  head.lag_keys = table_of<T>(call.lag_keys, piece);
  head.lag_values = table_of<T>(call.lag_values, piece);
  head.lag_zero = piece.keys - 1;
  if (call.key_bias.defined())
    head.key_bias = rows_of<const T>(call.key_bias, piece, piece.key, piece.keys);
  return head;
}

/// Each piece needs memory of the order of its inputs while it is worked on, so pieces
/// are taken in waves. A wave is a multiple of the thread count: as many pieces as fit
/// 16 MB, or one for each thread where those need more.
/// `size[i]`: numbers that piece i needs. Returns where each wave begins, and the end.
inline std::vector<size_t> waves_of(const std::vector<int64_t>& size, int64_t bytes) {
  constexpr int64_t kBudget = 16 << 20;
  int64_t largest = 0;
  for (const int64_t x : size) largest = std::max(largest, x);
  const int64_t budget =
      std::max<int64_t>(kBudget / bytes, largest * at::get_num_threads());
  const auto threads = static_cast<size_t>(at::get_num_threads());
  std::vector<size_t> begins = {0};
  int64_t used = 0;
  for (size_t i = 0; i < size.size(); ++i) {
    const size_t count = i - begins.back();
    if (used + size[i] > budget && count > 0 && count % threads == 0)
      begins.push_back(i), used = 0;
    used += size[i];
  }
  begins.push_back(size.size());
  return begins;
}

}  // namespace lagwise::ops
