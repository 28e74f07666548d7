#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace lagwise::data {

/// Deals examples to train, valid and test where files give no splits: the fractions
/// are spread evenly over the order of the examples, without chance.
///
///     example i is valid             if floor((i + 1) v) > floor(i v)
///     of the rest, the j-th is test  if floor((j + 1) t) > floor(j t)
///
/// where v is the fraction for validation and t = test / (1 - v).
class SplitDealer {
 public:
  SplitDealer(double valid, double test) : valid_(valid), test_(test / (1 - valid)) {}

  std::string next() {
    if (takes(valid_, at_++)) return "valid";
    return takes(test_, rest_++) ? "test" : "train";
  }

 private:
  static bool takes(double fraction, int64_t i) {
    const auto x = static_cast<double>(i);
    return std::floor((x + 1) * fraction) > std::floor(x * fraction);
  }

  double valid_, test_;
  int64_t at_ = 0, rest_ = 0;
};

}  // namespace lagwise::data
