#include "lagwise/encodings/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lagwise {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

double stretched_base(double base, double d, const RopeScaling& s) {
  // With one plane f_0 = 1 whatever the base.
  const double power = d > 2 ? d / (d - 2) : 0;
  if (s.kind == "ntk") return base * std::pow(s.factor, power);
  if (s.kind != "dynamic_ntk") return base;
  const double length = std::max(s.length, s.original);
  return base * std::pow(s.factor * length / s.original - (s.factor - 1), power);
}

/// Planes that turn often over the trained length keep their frequency, those that
/// turn less than beta_slow times are interpolated, with a ramp between the two.
void apply_yarn(std::vector<double>& f, double base, double d, const RopeScaling& s) {
  // The plane that makes so many turns over the trained length, as a real number.
  const auto plane = [&](double turns) {
    return d * std::log(s.original / (kTurn * turns)) / (2 * std::log(base));
  };
  const double low = std::max(std::floor(plane(s.beta_fast)), 0.0);
  double high = std::min(std::ceil(plane(s.beta_slow)), d - 1);
  if (low == high) high += 0.001;
  for (size_t j = 0; j < f.size(); ++j) {
    const double ramp = std::clamp((double(j) - low) / (high - low), 0.0, 1.0);
    f[j] = f[j] / s.factor * ramp + f[j] * (1 - ramp);
  }
}

void apply_llama3(std::vector<double>& f, const RopeScaling& s) {
  for (double& f_j : f) {
    const double periods = s.original * f_j / kTurn;  // in the trained length
    if (periods < s.low) {
      f_j /= s.factor;
    } else if (periods <= s.high) {
      const double smooth = (periods - s.low) / (s.high - s.low);
      f_j = (1 - smooth) * f_j / s.factor + smooth * f_j;
    }
  }
}

}  // namespace

RopeFrequencies rope_frequencies(int64_t d, double base, const RopeScaling& scaling) {
  const auto width = static_cast<double>(d);
  const double stretched = stretched_base(base, width, scaling);
  RopeFrequencies result;
  for (int64_t j = 0; j < d / 2; ++j)
    result.f.push_back(std::pow(stretched, -2 * double(j) / width));
  if (scaling.kind == "linear")
    for (double& f : result.f) f /= scaling.factor;
  if (scaling.kind == "llama3") apply_llama3(result.f, scaling);
  if (scaling.kind == "yarn") {
    apply_yarn(result.f, base, width, scaling);
    if (scaling.factor > 1) result.attention = 0.1 * std::log(scaling.factor) + 1;
  }
  return result;
}

}  // namespace lagwise
