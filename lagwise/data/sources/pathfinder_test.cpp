#include "lagwise/data/sources/pathfinder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lagwise/data/formats/fnv1a.h"

namespace lagwise::data {
namespace {

TEST(Pathfinder, MakesAnImageOfItsSeedAndIndexAlone) {
  const Pathfinder one(1), again(1), other(2);
  const PathfinderImage later = one.image(5);
  EXPECT_EQ(one.image(3).pixels, again.image(3).pixels);
  EXPECT_EQ(one.image(5).pixels, later.pixels);
  EXPECT_NE(one.image(3).pixels, one.image(4).pixels);
  EXPECT_NE(one.image(3).pixels, other.image(3).pixels);
}

TEST(Pathfinder, GivesTheSameBytesAnywhere) {
  uint64_t hash = kFnv1aStart;
  const Pathfinder pathfinder(7);
  for (int64_t i = 0; i < 8; ++i) {
    const PathfinderImage image = pathfinder.image(i);
    hash = fnv1a(image.pixels, hash * 2 + static_cast<uint64_t>(image.label));
  }
  EXPECT_EQ(hash_text(hash), "be59a9f1ee3a82ad");
}

TEST(Pathfinder, UsesTheWholeRangeOfGrey) {
  const Pathfinder pathfinder(1);
  for (int64_t i = 0; i < 20; ++i) {
    const auto pixels = pathfinder.image(i).pixels;
    ASSERT_EQ(pixels.size(), 1024u);
    EXPECT_EQ(*std::ranges::min_element(pixels), 0);
    EXPECT_EQ(*std::ranges::max_element(pixels), 255);
  }
}

// Both labels are equally likely, and neither is brighter: 100 images of each seed, 5
// deviations.
TEST(Pathfinder, HidesTheLabelFromCounting) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr uint64_t kSeeds = 1;  // it is slow there
#else
  constexpr uint64_t kSeeds = 5;
#endif
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Pathfinder pathfinder(seed);
    double bright[2] = {}, square[2] = {}, many[2] = {};
    for (int64_t i = 0; i < 100; ++i) {
      const PathfinderImage image = pathfinder.image(i);
      double sum = 0;
      for (const uint8_t x : image.pixels) sum += x / 1024.0;
      bright[image.label] += sum, square[image.label] += sum * sum;
      many[image.label] += 1;
    }
    EXPECT_NEAR(many[1], 50, 5 * std::sqrt(25.0));
    double mean[2], variance = 0;
    for (int k = 0; k < 2; ++k) {
      mean[k] = bright[k] / many[k];
      variance += (square[k] / many[k] - mean[k] * mean[k]) / many[k];
    }
    EXPECT_NEAR(mean[0], mean[1], 5 * std::sqrt(variance)) << seed;
  }
}

TEST(Pathfinder, DrawsMoreWhereSnakesAreLonger) {
  const Pathfinder hard(1), easy(1, {.contour_length = 6});
  double difference = 0;
  for (int64_t i = 0; i < 50; ++i) {
    for (const uint8_t x : hard.image(i).pixels) difference += x;
    for (const uint8_t x : easy.image(i).pixels) difference -= x;
  }
  EXPECT_GT(difference / 50 / 1024, 3);
}

TEST(Pathfinder, RefusesRulesNoImageCanKeep) {
  EXPECT_THROW(Pathfinder(1, {.side = 16}), std::invalid_argument);
  EXPECT_THROW(Pathfinder(1, {.contour_length = 2}), std::invalid_argument);
  EXPECT_THROW(Pathfinder(1, {.contour_length = 40}), std::invalid_argument);
  EXPECT_THROW(Pathfinder(1, {.continuity = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise::data
