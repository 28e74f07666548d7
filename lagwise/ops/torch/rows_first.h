#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <array>

namespace lagwise::ops {

/// Heads [B, H, N, W] lie in memory as [B, N, H, W] when they are cut out of a
/// projection's rows. What is computed from them is put down in the same order: the next
/// projection, or the gradient of the last, then reads it without a copy.
inline bool lies_rows_first(const at::Tensor& x) {
  return x.dim() == 4 && !x.is_contiguous() && x.transpose(1, 2).is_contiguous();
}

/// Not filled, of these sizes, in the order in which `like` lies.
inline at::Tensor empty_in_order(at::IntArrayRef sizes, const at::Tensor& like) {
  const auto options = like.options();
  if (sizes.size() != 4 || !lies_rows_first(like)) return at::empty(sizes, options);
  const std::array<int64_t, 4> rows = {sizes[0], sizes[2], sizes[1], sizes[3]};
  return at::empty(rows, options).transpose(1, 2);
}
inline at::Tensor empty_in_order(const at::Tensor& like) {
  return empty_in_order(like.sizes(), like);
}

}  // namespace lagwise::ops
