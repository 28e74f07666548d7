#include "lagwise/attention/random_directions.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lagwise {
namespace {

// Statistical gates run on all of these; none was chosen after the fact.
constexpr uint64_t kSeeds[] = {1, 2, 3, 4, 5};
constexpr int64_t kStream = 2;

TEST(RandomDirections, OfOneBlockAreOrthogonal) {
  for (int64_t d : {1, 2, 7, 64}) {
    const int64_t m = 2 * d + d / 2;  // the last block is not whole
    const auto w = random_directions(Noise(1, kStream), 0, m, d, {});
    ASSERT_EQ(w.sizes(), at::IntArrayRef({m, d}));
    for (int64_t begin = 0; begin < m; begin += d) {
      const auto block = w.slice(0, begin, std::min(begin + d, m));
      const auto unit = block / block.norm(2, {1}, true);
      const auto gram = at::matmul(unit, unit.t());
      EXPECT_LE((gram - at::eye(gram.size(0), at::kDouble)).abs().max().item<double>(),
                1e-13);
    }
  }
}

TEST(RandomDirections, HaveTheLengthsAskedFor) {
  const auto fixed = random_directions(Noise(1, kStream), 0, 20, 9, {true, false});
  EXPECT_LE((fixed.norm(2, {1}) - 3).abs().max().item<double>(), 1e-13);
  for (uint64_t seed : kSeeds) {
    // |w|^2 is chi^2 of D: mean D, variance 2 D.
    constexpr int64_t kRows = 2000, kD = 8;
    const auto w = random_directions(Noise(seed, kStream), 0, kRows, kD, {});
    const double mean = w.square().sum(1).mean().item<double>();
    EXPECT_NEAR(mean, kD, 5 * std::sqrt(2.0 * kD / kRows)) << seed;
  }
}

TEST(RandomDirections, PreferNoDirection) {
  for (const bool orthogonal : {true, false})
    for (uint64_t seed : kSeeds) {
      constexpr int64_t kRows = 4000, kD = 4;
      const auto w =
          random_directions(Noise(seed, kStream), 0, kRows, kD, {orthogonal, true});
      // Each number is normal: mean 0, mean square 1 with variance 2.
      const double gate = 5 / std::sqrt(static_cast<double>(kRows));
      EXPECT_LE(w.mean(0).abs().max().item<double>(), gate) << seed;
      EXPECT_LE((w.square().mean(0) - 1).abs().max().item<double>(),
                std::sqrt(2.0) * gate)
          << seed;
    }
}

TEST(RandomDirections, AreAFunctionOfTheNoiseTheLayerAndThePlace) {
  const auto w = random_directions(Noise(1, kStream), 3, 12, 5, {});
  EXPECT_TRUE(w.equal(random_directions(Noise(1, kStream), 3, 12, 5, {})));
  // More directions extend the ones there were.
  EXPECT_TRUE(
      w.equal(random_directions(Noise(1, kStream), 3, 40, 5, {}).slice(0, 0, 12)));
  EXPECT_FALSE(w.equal(random_directions(Noise(1, kStream), 4, 12, 5, {})));
  EXPECT_FALSE(w.equal(random_directions(Noise(2, kStream), 3, 12, 5, {})));
}

}  // namespace
}  // namespace lagwise
