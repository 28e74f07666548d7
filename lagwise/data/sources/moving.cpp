#include "lagwise/data/sources/moving.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "lagwise/data/sources/dice.h"

namespace lagwise::data {
namespace {

constexpr int64_t kMovingStream = 0x4D56;       // of the noise: this generator's own
constexpr int kLeastSpeed = 2, kMostSpeed = 3;  // pixels a frame
constexpr double kSpeckles = 0.1;               // the share of pixels that are some
constexpr int kSpeckle = 96;                    // the brightest of them

constexpr int kDots = 3, kStroke = 4;  // dots a side; dots of a stroke
constexpr double kGap = 5, kMargin = 1.5, kThickness = 1.5;  // pixels

struct Direction {
  const char* name;
  int64_t dy, dx;
};
constexpr std::array<Direction, 8> kDirections = {{{"right", 0, 1},
                                                   {"down-right", 1, 1},
                                                   {"down", 1, 0},
                                                   {"down-left", 1, -1},
                                                   {"left", 0, -1},
                                                   {"up-left", -1, -1},
                                                   {"up", -1, 0},
                                                   {"up-right", -1, 1}}};

struct Dot {
  double y, x;
};

/// From a point to the nearest of the line from a to b.
double distance(Dot p, Dot a, Dot b) {
  const double dy = b.y - a.y, dx = b.x - a.x;
  const double along = ((p.y - a.y) * dy + (p.x - a.x) * dx) / (dy * dy + dx * dx);
  const double at = std::clamp(along, 0.0, 1.0);
  const double y = p.y - a.y - at * dy, x = p.x - a.x - at * dx;
  return std::sqrt(y * y + x * x);
}

MovingShape stroke(Dice& dice) {
  std::vector<Dot> free, dots;
  for (int line = 0; line < kDots; ++line)
    for (int column = 0; column < kDots; ++column)
      free.push_back({kMargin + kGap * line, kMargin + kGap * column});
  while (dots.size() < kStroke) {
    const auto one = free.begin() + dice.pick(static_cast<int>(free.size()));
    dots.push_back(*one);
    free.erase(one);
  }
  MovingShape shape;
  for (int y = 0; y < MovingShape::kSide; ++y)
    for (int x = 0; x < MovingShape::kSide; ++x) {
      const Dot at{static_cast<double>(y), static_cast<double>(x)};
      double nearest = kThickness;
      for (size_t j = 1; j < dots.size(); ++j)
        nearest = std::min(nearest, distance(at, dots[j - 1], dots[j]));
      shape.pixels.push_back(
          static_cast<uint8_t>(std::lround(255 * std::min(1.0, kThickness - nearest))));
    }
  return shape;
}

/// n, counted anew from 0 at each border.
int64_t around(int64_t n, int64_t side) { return (n % side + side) % side; }

MovingClip film(Dice& dice, const MovingRules& rules, const MovingShape& shape) {
  MovingClip clip;
  clip.label = dice.pick(static_cast<int>(kDirections.size()));
  const Direction way = kDirections[static_cast<size_t>(clip.label)];
  const int64_t speed = dice.between(kLeastSpeed, kMostSpeed);
  const int64_t top = dice.pick(static_cast<int>(rules.side));
  const int64_t left = dice.pick(static_cast<int>(rules.side));
  std::vector<uint8_t> still;
  for (int64_t i = 0; i < rules.side * rules.side; ++i)
    still.push_back(
        static_cast<uint8_t>(dice.chance(kSpeckles) ? dice.between(1, kSpeckle) : 0));
  for (int64_t t = 0; t < rules.frames; ++t) {
    std::vector<uint8_t> frame = still;
    for (int64_t i = 0; i < std::ssize(shape.pixels); ++i) {
      const int64_t y = top + t * speed * way.dy + i / MovingShape::kSide;
      const int64_t x = left + t * speed * way.dx + i % MovingShape::kSide;
      uint8_t& pixel = frame[static_cast<size_t>(around(y, rules.side) * rules.side +
                                                 around(x, rules.side))];
      pixel = std::max(pixel, shape.pixels[static_cast<size_t>(i)]);
    }
    clip.pixels.insert(clip.pixels.end(), frame.begin(), frame.end());
  }
  return clip;
}

}  // namespace

const std::vector<std::string>& moving_directions() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Direction& way : kDirections) all.emplace_back(way.name);
    return all;
  }();
  return names;
}

Moving::Moving(uint64_t seed, const MovingRules& rules) : seed_(seed), rules_(rules) {
  if (rules.frames < 2 || rules.frames > 64)
    throw std::invalid_argument("moving: expected 2 to 64 frames, got " +
                                std::to_string(rules.frames));
  if (rules.side < MovingShape::kSide || rules.side > 256)
    throw std::invalid_argument("moving: expected frames of 14 to 256 pixels, got " +
                                std::to_string(rules.side));
}

MovingClip Moving::clip(int64_t index) const {
  Dice dice(Noise(seed_, kMovingStream, index).at({}));
  const MovingShape shape = stroke(dice);
  return film(dice, rules_, shape);
}

MovingClip Moving::clip(int64_t index, const MovingShape& shape) const {
  Dice dice(Noise(seed_, kMovingStream, index).at({}));
  return film(dice, rules_, shape);
}

MovingShape moving_shape(Bytes picture, int64_t side) {
  // Pixel i of the shape lies over pixels [from(i), to(i)), one or more, of the picture.
  const auto from = [&](int64_t i) { return i * side / MovingShape::kSide; };
  const auto to = [&](int64_t i) { return std::max(from(i + 1), from(i) + 1); };
  MovingShape shape;
  for (int64_t y = 0; y < MovingShape::kSide; ++y)
    for (int64_t x = 0; x < MovingShape::kSide; ++x) {
      int64_t sum = 0, count = 0;
      for (int64_t v = from(y); v < to(y); ++v)
        for (int64_t u = from(x); u < to(x); ++u, ++count)
          sum += picture[static_cast<size_t>(v * side + u)];
      shape.pixels.push_back(static_cast<uint8_t>((sum + count / 2) / count));
    }
  return shape;
}

}  // namespace lagwise::data
