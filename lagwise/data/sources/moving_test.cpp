#include "lagwise/data/sources/moving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kFrame = 28 * 28;

/// One pixel, brighter than any of the background.
MovingShape point() {
  MovingShape shape;
  shape.pixels.assign(MovingShape::kSide * MovingShape::kSide, 0);
  shape.pixels[0] = 255;
  return shape;
}

/// Where the point is in each frame: y, x.
std::vector<std::pair<int64_t, int64_t>> path_of(const MovingClip& clip) {
  std::vector<std::pair<int64_t, int64_t>> path;
  for (size_t i = 0; i < clip.pixels.size(); ++i)
    if (clip.pixels[i] == 255) {
      const int64_t at = static_cast<int64_t>(i) % kFrame;
      path.emplace_back(at / 28, at % 28);
    }
  return path;
}

/// From one place to the next on a frame without borders, the shorter way.
int64_t step(int64_t from, int64_t to) { return (to - from + 28 + 14) % 28 - 14; }

TEST(Moving, IsAFunctionOfSeedAndIndex) {
  const Moving moving(3), again(3), other(4);
  EXPECT_EQ(moving.clip(5).pixels, again.clip(5).pixels);
  EXPECT_EQ(moving.clip(5).label, again.clip(5).label);
  EXPECT_NE(moving.clip(5).pixels, moving.clip(6).pixels);
  EXPECT_NE(moving.clip(5).pixels, other.clip(5).pixels);
  EXPECT_EQ(moving.clip(5).pixels.size(), 8u * kFrame);
}

TEST(Moving, GoesTheWayItsLabelSays) {
  const std::map<std::string, std::pair<int, int>> ways = {
      {"right", {0, 1}},      {"down-right", {1, 1}}, {"down", {1, 0}},
      {"down-left", {1, -1}}, {"left", {0, -1}},      {"up-left", {-1, -1}},
      {"up", {-1, 0}},        {"up-right", {-1, 1}}};
  const Moving moving(1);
  std::map<int, int> labels;
  std::set<int64_t> speeds;
  for (int64_t i = 0; i < 800; ++i) {
    const MovingClip clip = moving.clip(i, point());
    ++labels[clip.label];
    const auto path = path_of(clip);
    ASSERT_EQ(path.size(), 8u);  // one in each frame
    const int64_t dy = step(path[0].first, path[1].first),
                  dx = step(path[0].second, path[1].second);
    for (size_t t = 2; t < 8; ++t) {
      ASSERT_EQ(step(path[t - 1].first, path[t].first), dy);
      ASSERT_EQ(step(path[t - 1].second, path[t].second), dx);
    }
    const int64_t speed = std::max(std::abs(dy), std::abs(dx));
    speeds.insert(speed);
    const auto way = ways.at(moving_directions()[static_cast<size_t>(clip.label)]);
    ASSERT_EQ(dy, speed * way.first);
    ASSERT_EQ(dx, speed * way.second);
  }
  EXPECT_THAT(speeds, ElementsAre(2, 3));
  ASSERT_EQ(labels.size(), 8u);
  for (const auto& [label, many] : labels) EXPECT_NEAR(many, 100, 40) << label;
}

TEST(Moving, LeavesTheBackgroundStill) {
  const MovingClip clip = Moving(2).clip(0, point());
  int64_t speckles = 0;
  for (int64_t i = 0; i < kFrame; ++i) {
    std::set<int> seen;  // at one place, over all frames
    for (int64_t t = 0; t < 8; ++t)
      seen.insert(clip.pixels[static_cast<size_t>(t * kFrame + i)]);
    seen.erase(255);
    EXPECT_EQ(seen.size(), 1u);
    EXPECT_LE(*seen.begin(), 96);
    speckles += *seen.begin() > 0;
  }
  EXPECT_NEAR(static_cast<double>(speckles), 0.1 * kFrame, 30);
}

TEST(Moving, DrawsStrokesOfItsOwn) {
  const Moving moving(7);
  std::set<int64_t> sizes;
  for (int64_t i = 0; i < 20; ++i) {
    const MovingClip clip = moving.clip(i);
    const auto bright = [&](int64_t frame) {
      const auto first = clip.pixels.begin() + frame * kFrame;
      return std::count_if(first, first + kFrame, [](uint8_t x) { return x > 128; });
    };
    EXPECT_GT(bright(0), 20);
    EXPECT_LT(bright(0), 130);
    for (int64_t t = 1; t < 8; ++t)
      EXPECT_EQ(bright(t), bright(0));  // it keeps its form
    sizes.insert(bright(0));
  }
  EXPECT_GT(sizes.size(), 5u);
}

TEST(Moving, MakesAShapeOfAPicture) {
  std::vector<uint8_t> picture(28 * 28, 0);
  picture[0] = 100, picture[1] = 50, picture[28] = 30;  // under the first pixel
  picture[2 * 28 + 27] = 200;  // under the last of the second row
  const MovingShape shape = moving_shape(picture, 28);
  EXPECT_EQ(shape.pixels.size(), 196u);
  EXPECT_EQ(shape.pixels[0], 45);
  EXPECT_EQ(shape.pixels[14 + 13], 50);
  EXPECT_EQ(std::ranges::count(shape.pixels, 0), 194);
  const std::vector<uint8_t> small = {1, 2, 3, 4};  // each becomes a quarter
  const MovingShape wide = moving_shape(small, 2);
  EXPECT_EQ(wide.pixels[6 * 14 + 6], 1);
  EXPECT_EQ(wide.pixels[6 * 14 + 7], 2);
  EXPECT_EQ(wide.pixels[7 * 14 + 6], 3);
  EXPECT_EQ(std::ranges::count(wide.pixels, 4), 49);
}

TEST(Moving, RefusesRulesNoClipCanKeep) {
  EXPECT_THROW(Moving(0, {.frames = 1}), std::invalid_argument);
  EXPECT_THROW(Moving(0, {.frames = 65}), std::invalid_argument);
  EXPECT_THROW(Moving(0, {.side = 13}), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise::data
