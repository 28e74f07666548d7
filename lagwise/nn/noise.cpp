#include "lagwise/nn/noise.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <span>

namespace lagwise::nn {
namespace {

constexpr int64_t kPiece = 1 << 14;  // numbers a thread fills at a time

/// Calls fill(first, numbers) over pieces of a dense tensor, in parallel.
template <class Fill>
void in_pieces(at::Tensor& x, const Fill& fill) {
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

}  // namespace

at::Tensor normal_parameter(at::IntArrayRef sizes, double deviation, uint64_t seed,
                            int64_t place) {
  at::Tensor x = at::empty(sizes, at::kFloat);
  const NoiseRow row = Noise(seed, streams::kWeights).at({.feature = place});
  in_pieces(x, [&](int64_t first, std::span<float> to) { row.fill_normal(first, to); });
  return x.mul_(deviation).set_requires_grad(true);
}

at::Tensor constant_parameter(at::IntArrayRef sizes, double value) {
  return at::full(sizes, value, at::kFloat).set_requires_grad(true);
}

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
