#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace lagwise {

/// The powers of a permutation pi, of any exponent, from its cycles: an element at
/// place o of a cycle of length L goes to place (o + s) mod L under pi^s. No table of
/// powers is kept, so positions have no limit; and the same code serves s = 10
/// and s = 10^12.
class PermutationPowers {
 public:
  /// std::invalid_argument if `pi` is not a permutation of 0..size-1.
  explicit PermutationPowers(const std::vector<int64_t>& pi);

  /// pi^s(j), for s of either sign.
  int64_t at(int64_t j, int64_t s) const {
    const Place& place = places_[size_t(j)];
    const int64_t o = (place.offset + s % place.length + place.length) % place.length;
    return cycles_[size_t(place.begin + o)];
  }

  /// Rows of indices, int64 [rows of s, size]: entry (i, j) is pi^(s_i)(j).
  at::Tensor table(const at::Tensor& exponents) const;

  /// The least s > 0 with pi^s = 1, at which positions begin to look alike; as a
  /// double, since it can be large.
  double order() const;

 private:
  struct Place {
    int64_t begin = 0, length = 1, offset = 0;  // its cycle in cycles_, its place there
  };
  std::vector<Place> places_;    // by element
  std::vector<int64_t> cycles_;  // one after another
};

/// A random permutation of 0..size-1 with a long order: the best of 64 draws.
std::vector<int64_t> long_permutation(int64_t size, uint64_t seed);

}  // namespace lagwise
