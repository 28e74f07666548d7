#include "lagwise/data/sources/pathfinder_paddle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>

namespace lagwise::data {
namespace {

constexpr double kPi = std::numbers::pi;

TEST(PathfinderPaddle, MovesByRoundingUp) {
  EXPECT_EQ(moved({10, 10}, 0, 2), (Cell{10, 12}));
  EXPECT_EQ(moved({10, 10}, kPi / 2, 2), (Cell{12, 10 + 0}));
  EXPECT_EQ(moved({10, 10}, kPi / 4, 2), (Cell{12, 12}));
  EXPECT_EQ(moved({10, 10}, -3 * kPi / 4, 2), (Cell{9, 9}));
}

/// The filter by its definition, in double and without rounding.
std::vector<double> lanczos_by_definition(const std::vector<uint8_t>& image, int side,
                                          int new_side) {
  const auto weight = [](double x) {
    const auto sinc = [](double t) {
      return t == 0 ? 1 : std::sin(kPi * t) / (kPi * t);
    };
    return std::abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0.0;
  };
  const double scale = static_cast<double>(side) / new_side;
  std::vector<double> out;
  for (int y = 0; y < new_side; ++y)
    for (int x = 0; x < new_side; ++x) {
      double sum = 0, norm_y = 0, norm_x = 0;
      for (int i = 0; i < side; ++i) {
        norm_y += weight((i + 0.5) / scale - (y + 0.5));
        norm_x += weight((i + 0.5) / scale - (x + 0.5));
      }
      for (int v = 0; v < side; ++v)
        for (int u = 0; u < side; ++u)
          sum += image[place_in(side, v, u)] * weight((v + 0.5) / scale - (y + 0.5)) /
                 norm_y * weight((u + 0.5) / scale - (x + 0.5)) / norm_x;
      out.push_back(std::clamp(sum, 0.0, 255.0));
    }
  return out;
}

TEST(PathfinderPaddle, BringsImagesDownWithLanczosFilter) {
  std::vector<uint8_t> image(size_t{17} * 17);
  for (size_t i = 0; i < image.size(); ++i)
    image[i] =
        static_cast<uint8_t>(120 + 100 * std::sin(0.37 * static_cast<double>(i)));
  const auto got = lanczos(image, 17, 9);
  const auto want = lanczos_by_definition(image, 17, 9);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1.5) << i;  // two roundings to bytes
  const std::vector<uint8_t> flat(size_t{16} * 16, 77);
  for (const uint8_t x : lanczos(flat, 16, 8)) EXPECT_EQ(x, 77);
}

TEST(PathfinderPaddle, PointsWhereItsAngleSays) {
  for (int degrees = -180; degrees < 180; ++degrees) {
    const double angle = degrees * kPi / 180;
    const Paddle& paddle = paddle_at(angle);
    double y = 0, x = 0, sum = 0;
    for (int v = 0; v < Paddle::kSide; ++v)
      for (int u = 0; u < Paddle::kSide; ++u) {
        const double bright = paddle.line(v, u);
        EXPECT_LE(bright, 1);
        y += bright * (v - Paddle::kReach), x += bright * (u - Paddle::kReach);
        sum += bright;
      }
    ASSERT_GT(sum, 0.5);
    // The middle of the line lies half of its length ahead, up to rounding.
    EXPECT_NEAR(y / sum, std::sin(angle), 0.5) << degrees;
    EXPECT_NEAR(x / sum, std::cos(angle), 0.5) << degrees;
  }
}

TEST(PathfinderPaddle, KeepsRoomAboutItself) {
  for (int degrees = 0; degrees < 360; degrees += 15) {
    const Paddle& paddle = paddle_at(degrees * kPi / 180);
    const double line =
        std::accumulate(paddle.line.at.begin(), paddle.line.at.end(), 0.0);
    const double room =
        std::accumulate(paddle.room.at.begin(), paddle.room.at.end(), 0.0);
    EXPECT_GT(room, 3 * line);
    for (size_t i = 0; i < paddle.line.at.size(); ++i)
      if (paddle.line.at[i] > 0.3) {
        EXPECT_GT(paddle.room.at[i], 0.5);
      }
  }
}

TEST(PathfinderPaddle, StampsWhatFallsInside) {
  Picture onto(4), sprite(3);
  sprite.at.assign(9, 0.5);
  onto(0, 0) = 0.9;
  stamp(onto, sprite, {0, 0}, 1.2);
  EXPECT_EQ(onto(0, 0), 0.9);
  EXPECT_EQ(onto(1, 1), 0.6);
  EXPECT_EQ(onto(2, 2), 0);
}

TEST(PathfinderPaddle, DrawsDiscs) {
  const Picture disc = marker(16, {5, 7});
  EXPECT_GT(disc(5, 7), 0.9);
  EXPECT_GT(disc(5, 6), 0.5);
  EXPECT_LT(disc(5, 10), 0.1);
  EXPECT_LT(disc(8, 7), 0.1);
}

}  // namespace
}  // namespace lagwise::data
