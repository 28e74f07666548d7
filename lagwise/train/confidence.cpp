#include "lagwise/train/confidence.h"

#include <cmath>
#include <limits>

namespace lagwise {

// Cornish-Fisher expansion around the normal quantile z (Abramowitz and Stegun,
// 26.7.5), good to 1e-3 from 4 degrees of freedom on; a table before.
double student_t(int64_t freedom) {
  constexpr double kTable[] = {12.7062, 4.3027, 3.1824, 2.7764};
  if (freedom <= 4) return kTable[freedom < 1 ? 0 : freedom - 1];
  const double z = 1.959963985, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  const auto v = static_cast<double>(freedom);
  return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v);
}

Interval mean_of_windows(std::span<const double> sums, std::span<const double> counts) {
  double sum = 0, count = 0;
  int64_t windows = 0;
  for (size_t w = 0; w < sums.size(); ++w) {
    if (counts[w] <= 0) continue;
    sum += sums[w], count += counts[w], ++windows;
  }
  if (windows == 0)
    return {std::numeric_limits<double>::quiet_NaN(),
            std::numeric_limits<double>::infinity()};
  const double mean = sum / count;
  if (windows == 1) return {mean, std::numeric_limits<double>::infinity()};
  double squares = 0;
  for (size_t w = 0; w < sums.size(); ++w) {
    const double off = counts[w] > 0 ? sums[w] - mean * counts[w] : 0;
    squares += off * off;
  }
  const auto n = static_cast<double>(windows);
  return {mean, student_t(windows - 1) * std::sqrt(n / (n - 1) * squares) / count};
}

int sure_sign(const Interval& difference) {
  constexpr double kShown = 0.0005;
  if (std::abs(difference.mean) < kShown) return 0;
  return difference.mean < -difference.error  ? -1
         : difference.mean > difference.error ? 1
                                              : 0;
}

}  // namespace lagwise
