#include "lagwise/nn/parameters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "lagwise/nn/in_pieces.h"
#include "lagwise/ops/encoded.h"

namespace lagwise::nn {
namespace {

thread_local bool without_values = false;

}  // namespace

WithoutValues::WithoutValues() : before_(without_values) { without_values = true; }

WithoutValues::~WithoutValues() { without_values = before_; }

at::Tensor normal_parameter(at::IntArrayRef sizes, double deviation, uint64_t seed,
                            int64_t place) {
  at::Tensor x = at::empty(sizes, at::kFloat);
  if (without_values) return x.set_requires_grad(true);
  const NoiseRow row = Noise(seed, streams::kWeights).at({.feature = place});
  in_pieces(x, [&](int64_t first, std::span<float> to) { row.fill_normal(first, to); });
  return x.mul_(deviation).set_requires_grad(true);
}

at::Tensor constant_parameter(at::IntArrayRef sizes, double value) {
  return at::full(sizes, value, at::kFloat).set_requires_grad(true);
}

Holder::Holder(const std::vector<std::pair<std::string, at::Tensor>>& parameters) {
  for (const auto& [name, tensor] : parameters) register_parameter(name, tensor);
}

}  // namespace lagwise::nn
