#include "lagwise/encodings/head_decay.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <bit>
#include <cmath>

#include "lagwise/encodings/lags.h"

namespace lagwise {

std::vector<double> alibi_slopes(int64_t heads, double exponent) {
  const auto whole = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<double> slopes;
  for (int64_t h = 1; h <= whole; ++h)
    slopes.push_back(std::exp2(-exponent * double(h) / double(whole)));
  for (int64_t h = 1; static_cast<int64_t>(slopes.size()) < heads; h += 2)
    slopes.push_back(std::exp2(-exponent * double(h) / double(2 * whole)));
  return slopes;
}

const std::vector<std::string>& decay_kinds() {
  static const std::vector<std::string> kinds = {"retnet", "alibi", "lightning", "tnl"};
  return kinds;
}

std::string take_decay(Spec& spec) {
  std::vector<std::string> legal = decay_kinds();
  legal.insert(legal.begin(), "none");
  return spec.take_choice("decay", "none", legal);
}

at::Tensor head_decay(const std::string& kind, int64_t heads, int64_t layer,
                      int64_t layers) {
  const std::vector<double> slopes = alibi_slopes(heads);
  // A single layer is a first one.
  const double depth = layers > 1 ? double(layer) / double(layers - 1) : 0;
  const at::Tensor log_factor = at::empty({heads}, at::kDouble);
  double* const out = log_factor.data_ptr<double>();
  for (int64_t h = 0; h < heads; ++h) {
    const double slope = slopes[size_t(h)];
    if (kind == "retnet") {
      out[h] = std::log1p(-std::exp2(-5.0 - double(h)));
    } else if (kind == "lightning") {
      out[h] = -slope * (1 - depth + 1e-5);
    } else if (kind == "tnl") {
      out[h] =
          -8.0 * double(h + 1) / double(heads) * (1 - double(layer) / double(layers));
    } else {
      out[h] = -slope;
    }
  }
  return log_factor;
}

void fade(const char* name, Encoded& encoded, const at::Tensor& log_factor,
          const Placement& at) {
  refuse_positions(name, at);
  const at::ScalarType type = encoded.q.scalar_type();
  const at::Tensor distance =
      lags_between(at, encoded.q.size(2), encoded.k.size(2)).abs();
  encoded.lag_bias = (log_factor.unsqueeze(1) * distance).to(type);
  if (at.causal) encoded.decay = log_factor.to(type);
}

}  // namespace lagwise
