#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/crossover.h"

namespace lagwise::bench {

Crossing find_crossing(const Curve& exact, const Curve& linear) {
  const size_t common = std::min(exact.points.size(), linear.points.size());
  // log(exact / linear): negative as long as exact is cheaper.
  const auto lead = [&](size_t i) {
    return std::log(exact.points[i].ms / linear.points[i].ms);
  };
  const auto length = [&](size_t i) { return double(exact.points[i].n); };
  if (lead(0) >= 0) return {Crossing::Where::below, length(0)};
  for (size_t i = 1; i < common; ++i) {
    if (lead(i) < 0) continue;
    const double share = -lead(i - 1) / (lead(i) - lead(i - 1));
    const double log_n =
        (1 - share) * std::log(length(i - 1)) + share * std::log(length(i));
    return {Crossing::Where::at, std::exp(log_n)};
  }
  return {Crossing::Where::beyond, length(common - 1)};
}

std::string describe(const Crossing& crossing) {
  switch (crossing.where) {
    case Crossing::Where::below:
      return fmt::format("below {:.0f}", crossing.n);
    case Crossing::Where::at:
      return fmt::format("N = {:.0f}", crossing.n);
    case Crossing::Where::beyond:
      break;
  }
  return fmt::format("beyond {:.0f}", crossing.n);
}

}  // namespace lagwise::bench
