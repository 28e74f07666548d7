#include "lagwise/nn/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include "lagwise/nn/in_pieces.h"

namespace lagwise::nn {

at::Tensor dropout(const at::Tensor& x, double p, const Draw& draw, int64_t place) {
  if (p <= 0) return x;
  at::Tensor keep = at::empty(x.sizes(), at::kFloat);
  const NoiseRow row = draw.noise(streams::kDropout).at({.feature = place});
  const auto limit = static_cast<float>(p), scale = static_cast<float>(1 / (1 - p));
  in_pieces(keep, [&](int64_t first, std::span<float> to) {
    row.fill_uniform(first, to);
    for (float& one : to) one = one < limit ? 0.0F : scale;
  });
  return x * keep.to(x.scalar_type());
}

}  // namespace lagwise::nn
