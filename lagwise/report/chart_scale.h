#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "lagwise/report/chart.h"

namespace lagwise::report {

/// From a quantity to its share, 0 to 1, of the length of an axis.
struct Scale {
  double low = 0, high = 1;
  bool logarithmic = false;

  double share(double x) const {
    if (logarithmic) return std::log(x / low) / std::log(high / low);
    return (x - low) / (high - low);
  }
  double at(double share) const {
    if (logarithmic) return low * std::pow(high / low, share);
    return low + share * (high - low);
  }

  /// Where to write numbers: `count` even steps, or every power of ten (or of two,
  /// where there are few of ten).
  std::vector<double> ticks(int count) const {
    std::vector<double> ticks;
    if (logarithmic) {
      const double step = high / low > 1e3 ? 10 : 2;
      const auto lowest = std::lround(std::ceil(std::log(low) / std::log(step) - 1e-9));
      for (long power = lowest; std::pow(step, power) <= high * 1.0001; ++power)
        ticks.push_back(std::pow(step, power));
      return ticks;
    }
    for (int i = 0; i <= count; ++i) ticks.push_back(at(double(i) / count));
    return ticks;
  }
};

/// The scale that just holds everything finite; never of length 0.
inline Scale scale_of(const Chart& chart, bool across) {
  const Axis& axis = across ? chart.across : chart.up;
  double low = HUGE_VAL, high = -HUGE_VAL;
  const auto hold = [&](const std::vector<double>& numbers) {
    for (const double x : numbers) {
      if (!std::isfinite(x) || (axis.logarithmic && x <= 0)) continue;
      low = std::min(low, x), high = std::max(high, x);
    }
  };
  for (const Series& s : chart.series) {
    hold(across ? s.x : s.y);
    if (!across) hold(s.low), hold(s.high);
  }
  if (low > high) low = axis.logarithmic ? 1 : 0, high = low + 1;
  if (!(high - low > 1e-9 * std::abs(high))) {
    high = axis.logarithmic ? 1.1 * high : high + 0.5 + 0.1 * std::abs(high);
    low = axis.logarithmic ? low / 1.1 : low - 0.5 - 0.1 * std::abs(low);
  }
  return {low, high, axis.logarithmic};
}

}  // namespace lagwise::report
