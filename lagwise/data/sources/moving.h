#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

struct MovingRules {
  int64_t frames = 8;  ///< of a clip
  int64_t side = 28;   ///< of a frame, in pixels
};

/// Something that moves, in grey: kSide x kSide pixels, row by row.
struct MovingShape {
  static constexpr int64_t kSide = 14;
  std::vector<uint8_t> pixels;
};

struct MovingClip {
  std::vector<uint8_t> pixels;  ///< [frames, side, side], grey
  int label = 0;                ///< which way it goes: moving_directions()
};

/// Eight of them, in the order of labels: right, down-right, down, ..
const std::vector<std::string>& moving_directions();

/// Makes short clips of a shape that crosses a still background of dim speckles:
///
///     frame t shows it at (y + t v dy, x + t v dx), (dy, dx) one of eight directions,
///     v = 2 or 3 pixels a frame, (y, x) anywhere;
///
/// what leaves the frame on one side comes back on the other. So a clip and the same
/// clip played backwards are equally likely, with opposite labels: whoever does not know
/// the order of the frames is right in at most half of the cases.
///
/// A clip is a function of (seed, index) and of the shape, if one is given.
class Moving {
 public:
  /// std::invalid_argument for fewer than 2 frames, or for frames that a shape does not
  /// fit into.
  explicit Moving(uint64_t seed, const MovingRules& rules = {});

  /// Of a shape of its own: a stroke through four of nine dots, something like a digit.
  MovingClip clip(int64_t index) const;
  MovingClip clip(int64_t index, const MovingShape& shape) const;

 private:
  uint64_t seed_;
  MovingRules rules_;
};

/// A square picture, grey, as something that moves: each pixel is the mean of those that
/// lie under it.
MovingShape moving_shape(Bytes picture, int64_t side);

}  // namespace lagwise::data
