#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <span>

namespace lagwise::nn {

/// Calls fill(first, numbers) over pieces of a dense tensor, in parallel.
template <class Fill>
void in_pieces(at::Tensor& x, const Fill& fill) {
  constexpr int64_t kPiece = 1 << 14;  // numbers a thread fills at a time
  float* const data = x.data_ptr<float>();
  const int64_t count = x.numel();
  at::parallel_for(
      0, (count + kPiece - 1) / kPiece, 1, [&](int64_t begin, int64_t end) {
        for (int64_t piece = begin; piece < end; ++piece) {
          const int64_t first = piece * kPiece, size = std::min(kPiece, count - first);
          fill(first, std::span<float>(data + first, static_cast<size_t>(size)));
        }
      });
}

}  // namespace lagwise::nn
