#pragma once

#include <string>
#include <vector>

#include "lagwise/data/sets/examples.h"
#include "lagwise/data/sources/pathfinder.h"

namespace lagwise::data {

struct PathfinderMaking {
  int64_t train = 0, valid = 0, test = 0;  ///< images of each split
  uint64_t seed = 0;
  int64_t patch = 1;  ///< side of a square of pixels that becomes one row
  PathfinderRules rules;
};

/// Makes images: pixels as tokens, patch after patch as `image_patches` has them, label 0
/// or 1. test comes first, then valid, then train, so that both stay what they are when
/// train grows. std::invalid_argument for a patch that does not divide the side.
void make_pathfinder_examples(const PathfinderMaking& making,
                              const VisitExample& visit);

/// A line of the Long Range Arena's metadata: "imgs/3 sample_17.png 17 1 ..": the
/// folder, the file, its number, the label; further fields are passed over.
struct PathfinderLine {
  std::string image;  ///< folder and file
  int label = 0;
};

/// The lines of one metadata file. DataError with the offset of a line that is none, or
/// that leads out of the folder.
std::vector<PathfinderLine> parse_pathfinder_metadata(const std::string& name,
                                                      Bytes text);

/// Reads the Arena's folder (such as curv_contour_length_14), with metadata/<n>.npy
/// (which are text there) in the order of their numbers and the images they name. The
/// first 80 % are train, the next 10 % valid, the last test. Returns the side of the
/// images in pixels, which are square and of one size. DataError names what is wrong.
int64_t read_pathfinder_examples(const std::string& folder, int64_t patch,
                                 const VisitExample& visit);

}  // namespace lagwise::data
