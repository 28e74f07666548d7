#pragma once

#include <string>

#include "lagwise/data/sets/examples.h"
#include "lagwise/data/sources/moving.h"

namespace lagwise::data {

struct MovingMaking {
  int64_t train = 0, valid = 0, test = 0;  ///< clips of each split
  uint64_t seed = 0;
  int64_t patch = 4;  ///< side of a square of pixels that becomes one row
  MovingRules rules = {};
  std::string path = {};  ///< pictures that move, as `read_image_examples` takes them;
                          ///<   empty: strokes, made
};

/// Makes clips, pixels as tokens, the direction as label: frame after frame, in each
/// patch after patch as `image_patches` has them. Of pictures each split moves its own,
/// one picked for each clip. test comes first, then valid, then train, so that both stay
/// what they are when train grows. DataError names what is wrong with the pictures;
/// std::invalid_argument a patch that does not divide the side of a frame.
void make_moving_examples(const MovingMaking& making, const VisitExample& visit);

}  // namespace lagwise::data
