#include "lagwise/nn/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include "lagwise/nn/in_pieces.h"

namespace lagwise::nn {

at::Tensor dropout(const at::Tensor& x, const Pass& pass, int64_t place) {
  const double p = pass.dropout;
  if (p <= 0) return x;
  at::Tensor keep = at::empty(x.sizes(), at::kFloat);
  const Noise noise = pass.draw.noise(streams::kDropout);
  const int64_t channels = x.size(2), sequence = x.size(1) * channels;
  const auto limit = static_cast<float>(p), scale = static_cast<float>(1 / (1 - p));
  // Numbers of sequence b, from number `from` of it on.
  const auto fill = [&](int64_t b, int64_t from, std::span<float> to) {
    const int64_t start =
        pass.starts.empty() ? pass.at.query_start : pass.starts[static_cast<size_t>(b)];
    noise.at({.feature = place, .realisation = pass.first_row + b})
        .fill_uniform(start * channels + from, to);
    for (float& one : to) one = one < limit ? 0.0F : scale;
  };
  in_pieces(keep, [&](int64_t first, std::span<float> to) {
    while (!to.empty()) {  // a piece may hold the end of one sequence and the next
      const int64_t b = first / sequence, from = first % sequence;
      const auto count = std::min(to.size(), static_cast<size_t>(sequence - from));
      fill(b, from, to.first(count));
      to = to.subspan(count), first += static_cast<int64_t>(count);
    }
  });
  return x * keep.to(x.scalar_type());
}

}  // namespace lagwise::nn
