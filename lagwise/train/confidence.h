#pragma once

#include <cstdint>
#include <span>

namespace lagwise {

/// A mean and half of its 95 % confidence interval.
struct Interval {
  double mean = 0;
  double error = 0;  ///< infinite where fewer than two windows speak
};

/// The mean of all numbers of W windows, when window w has counts[w] of them that sum
/// to sums[w]:
///
///     mean     = sum_w s_w / sum_w c_w
///     variance = W / (W - 1) sum_w (s_w - mean c_w)^2 / (sum_w c_w)^2
///     error    = t(W - 1) sqrt(variance)
///
/// Windows are independent, the numbers within one are not: it is windows that are
/// counted. A window without numbers is left out; with none at all the mean is NaN.
/// With equal counts this is the mean of the windows' means and its usual error.
Interval mean_of_windows(std::span<const double> sums, std::span<const double> counts);

/// -1 where the difference surely lowers a loss in nats, 1 where it surely raises it, 0
/// where the interval holds 0 or the mean is below half a thousandth of a nat: that
/// prints as 0.000, and a hundred windows are sure of much smaller ones.
int sure_sign(const Interval& difference);

/// The 0.975 quantile of Student's t, for `freedom` >= 1 degrees of freedom, to 0.2 %.
double student_t(int64_t freedom);

}  // namespace lagwise
