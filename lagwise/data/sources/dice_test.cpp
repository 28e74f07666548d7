#include "lagwise/data/sources/dice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lagwise::data {
namespace {

TEST(Dice, RollsTheNoiseInOrder) {
  const NoiseRow row = Noise(3).at({});
  Dice dice(row);
  for (int64_t i = 0; i < 200; ++i) EXPECT_EQ(dice.roll(), row.uniform(i));
}

TEST(Dice, PicksEachEquallyOften) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Dice dice(Noise(seed).at({}));
    std::vector<int> counts(7);
    constexpr int kMany = 7000;
    for (int i = 0; i < kMany; ++i)
      ++counts[static_cast<size_t>(dice.between(2, 8) - 2)];
    for (const int count : counts)
      EXPECT_NEAR(count, kMany / 7.0, 5 * std::sqrt(kMany / 7.0 * 6 / 7));
  }
}

}  // namespace
}  // namespace lagwise::data
