#pragma once

#include <cstdint>
#include <vector>

namespace lagwise::data {

/// The rules of Pathfinder; the defaults are those of the Long Range Arena's 32 x 32
/// images. Paddles are drawn as data/sources/pathfinder_paddle.h says.
struct PathfinderRules {
  int side = 32;
  int contour_length = 14;  ///< paddles of each of the two long snakes: 14 is hard, 9
                            ///<   intermediate, 6 easy
  int seed_distance = 7;    ///< between their starts
  double continuity = 1.0;  ///< how much a turn is held against a snake
};

struct PathfinderImage {
  std::vector<uint8_t> pixels;  ///< grey, row by row
  int label = 0;                ///< 1: the two discs lie on one snake
};

/// Makes images for Pathfinder (Linsley et al., NeurIPS 2018, arXiv:1805.08315; Kim et
/// al., ICLR 2020) by the rules of their authors' generator, with the parameters of the
/// Long Range Arena:
///
///     two long snakes of paddles, grown together from starts a set distance apart;
///     shorter ones to distract, 20 paddles or so in all;
///     a disc at the start of one long snake and at the end of the same (label 1) or of
///     the other (label 0).
///
/// A snake grows by a paddle whose far end is one of the cells on a circle round the
/// joint, with odds
///
///     (1 - what stands there) max(0, cos(min(continuity |turn|, pi / 2)))^2,
///
/// and no two paddles come within a pixel of each other. What cannot go on starts anew.
/// The image is stretched so that its brightest pixel is 255.
///
/// An image is a function of (seed, index) alone.
class Pathfinder {
 public:
  /// std::invalid_argument for rules no image can keep.
  explicit Pathfinder(uint64_t seed, const PathfinderRules& rules = {});

  PathfinderImage image(int64_t index) const;

 private:
  uint64_t seed_;
  PathfinderRules rules_;
};

}  // namespace lagwise::data
