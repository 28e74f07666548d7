#pragma once

#include <array>

#include "lagwise/core/noise.h"

namespace lagwise::data {

/// Random choices one after the other, from a row of counter-based noise: the same
/// row gives the same choices on every machine.
class Dice {
 public:
  explicit Dice(const NoiseRow& row) : row_(row) {}

  /// A number in (0, 1).
  double roll() {
    const auto lane = static_cast<size_t>(at_ % static_cast<int64_t>(drawn_.size()));
    if (lane == 0) row_.fill_uniform<double>(at_, drawn_);
    ++at_;
    return drawn_[lane];
  }

  bool chance(double probability) { return roll() < probability; }

  /// One of 0 .. count - 1, all equally likely.
  int pick(int count) { return static_cast<int>(roll() * count); }
  int between(int least, int most) { return least + pick(most - least + 1); }

  template <class List>
  const auto& one_of(const List& list) {
    return list[static_cast<size_t>(pick(static_cast<int>(std::size(list))))];
  }

 private:
  NoiseRow row_;
  std::array<double, 4> drawn_{};  // four at a time cost the noise no more than one
  int64_t at_ = 0;
};

}  // namespace lagwise::data
