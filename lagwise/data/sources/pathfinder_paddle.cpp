#include "lagwise/data/sources/pathfinder_paddle.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

namespace lagwise::data {
namespace {

constexpr int kFine = 2;            // how much larger things are drawn
constexpr double kRadius = 1.5;     // of markers
constexpr double kLobes = 3;        // of Lanczos' filter
constexpr int64_t kUnit = 1 << 22;  // of its weights

double sinc(double x) {
  if (x == 0) return 1;
  const double a = x * std::numbers::pi;
  return std::sin(a) / a;
}

double lanczos_weight(double x) {
  return std::abs(x) < kLobes ? sinc(x) * sinc(x / kLobes) : 0;
}

/// The weights of the old pixels [first, first + size) in one new pixel.
struct Taps {
  int first = 0;
  std::vector<int64_t> weights;
};

Taps taps_of(int pixel, int side, int new_side) {
  const double scale = static_cast<double>(side) / new_side;
  const double wide = std::max(scale, 1.0);
  const double centre = (pixel + 0.5) * scale;
  Taps taps;
  taps.first = std::max(0, static_cast<int>(std::lround(centre - kLobes * wide)));
  const int end = std::min(side, static_cast<int>(std::lround(centre + kLobes * wide)));
  std::vector<double> weights;
  double sum = 0;
  for (int i = taps.first; i < end; ++i) {
    weights.push_back(lanczos_weight((i - centre + 0.5) / wide));
    sum += weights.back();
  }
  for (const double weight : weights)
    taps.weights.push_back(std::llround(weight / sum * kUnit));
  return taps;
}

uint8_t to_byte(int64_t sum) {
  return static_cast<uint8_t>(std::clamp<int64_t>((sum + kUnit / 2) >> 22, 0, 255));
}

/// The cells of a line, ends included, by steps along its longer axis (Bresenham,
/// 1965).
void draw_line(std::vector<uint8_t>& image, int side, Cell from, const Cell& to) {
  const int dx = std::abs(to.x - from.x), dy = -std::abs(to.y - from.y);
  const int sx = from.x < to.x ? 1 : -1, sy = from.y < to.y ? 1 : -1;
  for (int error = dx + dy;;) {
    image[place_in(side, from.y, from.x)] = 255;
    if (from == to) return;
    const int twice = 2 * error;
    if (twice >= dy) error += dy, from.x += sx;
    if (twice <= dx) error += dx, from.y += sy;
  }
}

/// Every cell within a disc round a bright one is bright.
std::vector<uint8_t> grown(const std::vector<uint8_t>& image, int side, int radius) {
  std::vector<uint8_t> out(image.size());
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x)
      for (int v = -radius; v <= radius; ++v)
        for (int u = -radius; u <= radius; ++u) {
          const int row = y + v, column = x + u;
          if (u * u + v * v > radius * radius || row < 0 || row >= side || column < 0 ||
              column >= side)
            continue;
          auto& cell = out[place_in(side, y, x)];
          cell = std::max(cell, image[place_in(side, row, column)]);
        }
  return out;
}

Picture picture_of(const std::vector<uint8_t>& bytes, int side) {
  Picture picture(side);
  for (size_t i = 0; i < bytes.size(); ++i) picture.at[i] = bytes[i] / 255.0;
  return picture;
}

Paddle draw_paddle(const Cell& head) {
  constexpr int kCentre = Paddle::kReach * kFine, kBlown = 2 * kCentre + 1;
  std::vector<uint8_t> line(place_in(kBlown, kBlown, 0));
  draw_line(line, kBlown, {kCentre, kCentre}, head);
  const auto room = grown(line, kBlown, Paddle::kMargin * kFine);
  Paddle paddle;
  paddle.line = picture_of(lanczos(line, kBlown, Paddle::kSide), Paddle::kSide);
  paddle.room = picture_of(lanczos(room, kBlown, Paddle::kSide), Paddle::kSide);
  return paddle;
}

/// Every paddle there is: heads within a square round the middle of the blown picture.
constexpr int kMiddle = Paddle::kReach * kFine, kLong = Paddle::kLength * kFine;
constexpr int kFirst = kMiddle - kLong, kHeads = 2 * kLong + 2;

std::vector<Paddle> all_paddles() {
  std::vector<Paddle> paddles;
  for (int y = 0; y < kHeads; ++y)
    for (int x = 0; x < kHeads; ++x)
      paddles.push_back(draw_paddle({kFirst + y, kFirst + x}));
  return paddles;
}

}  // namespace

Cell moved(const Cell& from, double angle, double distance) {
  return {static_cast<int>(std::ceil(from.y + distance * std::sin(angle))),
          static_cast<int>(std::ceil(from.x + distance * std::cos(angle)))};
}

std::vector<uint8_t> lanczos(std::span<const uint8_t> image, int side, int new_side) {
  const auto s = static_cast<size_t>(side), n = static_cast<size_t>(new_side);
  std::vector<Taps> taps;
  for (int i = 0; i < new_side; ++i) taps.push_back(taps_of(i, side, new_side));
  std::vector<uint8_t> across(s * n), out(n * n);
  for (size_t y = 0; y < s; ++y)
    for (size_t x = 0; x < n; ++x) {
      int64_t sum = 0;
      for (size_t i = 0; i < taps[x].weights.size(); ++i)
        sum +=
            taps[x].weights[i] * image[y * s + static_cast<size_t>(taps[x].first) + i];
      across[y * n + x] = to_byte(sum);
    }
  for (size_t y = 0; y < n; ++y)
    for (size_t x = 0; x < n; ++x) {
      int64_t sum = 0;
      for (size_t i = 0; i < taps[y].weights.size(); ++i)
        sum += taps[y].weights[i] *
               across[(static_cast<size_t>(taps[y].first) + i) * n + x];
      out[y * n + x] = to_byte(sum);
    }
  return out;
}

const Paddle& paddle_at(double angle) {
  static const std::vector<Paddle> paddles = all_paddles();
  const Cell head = moved({kMiddle, kMiddle}, angle, kLong);
  return paddles[place_in(kHeads, head.y - kFirst, head.x - kFirst)];
}

void stamp(Picture& onto, const Picture& sprite, const Cell& centre, double scale) {
  const int reach = sprite.side / 2;
  for (int v = 0; v < sprite.side; ++v)
    for (int u = 0; u < sprite.side; ++u) {
      const int y = centre.y + v - reach, x = centre.x + u - reach;
      if (onto.holds(y, x)) onto(y, x) = std::max(onto(y, x), scale * sprite(v, u));
    }
}

Picture marker(int side, const Cell& centre) {
  const int blown = side * kFine;
  std::vector<uint8_t> disc(place_in(blown, blown, 0));
  for (int y = 0; y < blown; ++y)
    for (int x = 0; x < blown; ++x) {
      const double v = y - kFine * centre.y, u = x - kFine * centre.x;
      if (u * u + v * v <= kRadius * kRadius * kFine * kFine)
        disc[place_in(blown, y, x)] = 255;
    }
  return picture_of(lanczos(disc, blown, side), side);
}

}  // namespace lagwise::data
