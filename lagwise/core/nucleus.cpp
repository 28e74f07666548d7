#include "lagwise/core/nucleus.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace lagwise {

std::vector<double> softmax(std::span<const double> logits, double temperature) {
  if (!(temperature > 0))
    throw std::invalid_argument("temperature must be above 0, got " +
                                std::to_string(temperature));
  double top = -std::numeric_limits<double>::infinity();
  for (const double x : logits) top = std::max(top, x);
  std::vector<double> weights(logits.size());
  if (std::isinf(top)) return weights;
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    sum += weights[i] = std::exp((logits[i] - top) / temperature);
  for (double& weight : weights) weight /= sum;
  return weights;
}

Nucleus nucleus(std::span<const double> probabilities, double p) {
  if (!(p >= 0 && p <= 1))
    throw std::invalid_argument("the mass of a nucleus is in 0 to 1, got " +
                                std::to_string(p));
  std::vector<int64_t> order;
  for (size_t i = 0; i < probabilities.size(); ++i)
    if (probabilities[i] > 0) order.push_back(static_cast<int64_t>(i));
  const auto mass = [&](int64_t id) { return probabilities[static_cast<size_t>(id)]; };
  std::ranges::stable_sort(order, std::greater<>(), mass);
  const double whole = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  Nucleus kept;
  double sum = 0;
  for (const int64_t id : order) {
    kept.ids.push_back(id);
    kept.probabilities.push_back(mass(id));
    sum += mass(id);
    if (p < 1 && sum > p * whole) break;
  }
  for (double& one : kept.probabilities) one /= sum;
  return kept;
}

}  // namespace lagwise
