#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace lagwise::data {

/// What Pathfinder is drawn with, at the size of the Long Range Arena: everything is
/// drawn at twice the size and brought down with Lanczos' filter, as the Arena's images
/// were.

/// Where a pixel stands in an image that is held row by row.
constexpr size_t place_in(int side, int y, int x) {
  return static_cast<size_t>(y) * static_cast<size_t>(side) + static_cast<size_t>(x);
}

/// An image of numbers, row by row.
struct Picture {
  int side = 0;
  std::vector<double> at;

  explicit Picture(int size) : side(size), at(place_in(size, size, 0)) {}
  double& operator()(int y, int x) { return at[place_in(side, y, x)]; }
  double operator()(int y, int x) const { return at[place_in(side, y, x)]; }
  bool holds(int y, int x) const { return y >= 0 && y < side && x >= 0 && x < side; }
};

/// A place in a picture.
struct Cell {
  int y = 0, x = 0;
  bool operator==(const Cell&) const = default;
};

/// The cell so far from another, coordinates rounded up. Angles in radians from x to y.
Cell moved(const Cell& from, double angle, double distance);

/// Brings a square image of bytes down (or up) to another side: Lanczos' filter of
/// three lobes along rows, then along columns, weights in units of 2^-22, each result
/// rounded and held within 0 .. 255: what the Python Imaging Library does.
std::vector<uint8_t> lanczos(std::span<const uint8_t> image, int side, int new_side);

/// A paddle: a line of two pixels and the room round it that nothing else may enter.
/// Both 9 x 9, in 0 .. 1, with the line's start in the middle.
struct Paddle {
  static constexpr int kLength = 2, kMargin = 1, kReach = 4, kSide = 2 * kReach + 1;
  Picture line{kSide}, room{kSide};
};

/// That of an angle. Few angles differ in what they draw, so each is drawn once.
const Paddle& paddle_at(double angle);

/// The larger of the two, cell by cell: `sprite`, times `scale`, with its middle at
/// `centre`; what falls outside is lost.
void stamp(Picture& onto, const Picture& sprite, const Cell& centre, double scale = 1);

/// A disc of radius 1.5 round a cell, in 0 .. 1.
Picture marker(int side, const Cell& centre);

}  // namespace lagwise::data
