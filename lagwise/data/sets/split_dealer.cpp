#include "lagwise/data/sets/split_dealer.h"

#include <cmath>

#include "lagwise/core/noise_streams.h"

namespace lagwise::data {
namespace {

NoiseRow places(int64_t share) {
  return Noise(0, streams::kSplits).at({.head = share});
}

}  // namespace

SplitDealer::SplitDealer(double valid, double test)
    : valid_(valid, places(0)), test_(test / (1 - valid), places(1)) {}

void SplitDealer::Share::begin_stretch() {
  const auto stretch_of = [&](int64_t i) {
    return std::floor(static_cast<double>(i) * fraction_);
  };
  const double number = stretch_of(at_);
  end_ = static_cast<int64_t>(std::ceil((number + 1) / fraction_));
  while (stretch_of(end_ - 1) > number) --end_;  // what rounding missed
  while (stretch_of(end_) <= number) ++end_;
  const auto size = static_cast<double>(end_ - at_);
  taken_ =
      at_ + static_cast<int64_t>(places_.uniform(static_cast<int64_t>(number)) * size);
}

bool SplitDealer::Share::takes_next() {
  if (fraction_ <= 0) return false;
  if (at_ == end_) begin_stretch();
  return at_++ == taken_;
}

}  // namespace lagwise::data
