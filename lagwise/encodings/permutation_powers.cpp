#include "lagwise/encodings/permutation_powers.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "lagwise/core/noise.h"
#include "lagwise/ops/encoded.h"

namespace lagwise {

PermutationPowers::PermutationPowers(const std::vector<int64_t>& pi)
    : places_(pi.size()) {
  const auto size = static_cast<int64_t>(pi.size());
  std::vector<bool> seen(pi.size());
  for (const int64_t image : pi) {
    if (image < 0 || image >= size || seen[size_t(image)])
      throw std::invalid_argument("permutation: expected each of 0 to " +
                                  std::to_string(size - 1) + " once, got " +
                                  std::to_string(image));
    seen[size_t(image)] = true;
  }
  std::fill(seen.begin(), seen.end(), false);
  for (int64_t first = 0; first < size; ++first) {
    if (seen[size_t(first)]) continue;
    const auto begin = static_cast<int64_t>(cycles_.size());
    for (int64_t j = first; !seen[size_t(j)]; j = pi[size_t(j)]) {
      seen[size_t(j)] = true;
      places_[size_t(j)] = {begin, 1, static_cast<int64_t>(cycles_.size()) - begin};
      cycles_.push_back(j);
    }
    const int64_t length = static_cast<int64_t>(cycles_.size()) - begin;
    for (int64_t i = begin; i < begin + length; ++i)
      places_[size_t(cycles_[size_t(i)])].length = length;
  }
}

at::Tensor PermutationPowers::table(const at::Tensor& exponents) const {
  const at::Tensor s = exponents.to(at::kLong).contiguous();
  const auto size = static_cast<int64_t>(places_.size());
  at::Tensor table = at::empty({s.numel(), size}, at::kLong);
  auto* out = table.data_ptr<int64_t>();
  for (int64_t i = 0; i < s.numel(); ++i)
    for (int64_t j = 0; j < size; ++j) *out++ = at(j, s.data_ptr<int64_t>()[i]);
  return table;
}

double PermutationPowers::order() const {
  std::set<int64_t> lengths;
  for (const Place& place : places_) lengths.insert(place.length);
  // By prime powers: the least common multiple itself could overflow.
  double order = 1;
  const int64_t longest = lengths.empty() ? 1 : *lengths.rbegin();
  for (int64_t prime = 2; prime <= longest; ++prime) {
    bool is_prime = true;
    for (int64_t d = 2; d * d <= prime; ++d) is_prime = is_prime && prime % d != 0;
    if (!is_prime) continue;
    int64_t most = 1;
    for (int64_t length : lengths) {
      int64_t power = 1;
      for (; length % prime == 0; length /= prime) power *= prime;
      most = std::max(most, power);
    }
    order *= static_cast<double>(most);
  }
  return order;
}

std::vector<int64_t> long_permutation(int64_t size, uint64_t seed) {
  constexpr int64_t kDraws = 64;
  const Noise noise(seed, streams::kLrpe);
  std::vector<int64_t> best;
  double longest = 0;
  for (int64_t draw = 0; draw < kDraws; ++draw) {
    const NoiseRow row = noise.at({.realisation = draw});
    std::vector<int64_t> pi(static_cast<size_t>(size));
    std::iota(pi.begin(), pi.end(), int64_t{0});
    for (int64_t j = size - 1; j > 0; --j)  // Fisher and Yates
      std::swap(pi[size_t(j)],
                pi[size_t(std::min(j, int64_t(row.uniform(j) * double(j + 1))))]);
    const double order = PermutationPowers(pi).order();
    if (order > longest) longest = order, best = pi;
  }
  return best;
}

}  // namespace lagwise
