#include <cstdlib>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/grey_png.h"
#include "lagwise/data/sources/pathfinder_examples.h"

namespace {

using namespace lagwise::data;

void read_image(Bytes bytes) {
  const GreyImage image = parse_grey_png("input", bytes);
  if (image.pixels.size() != static_cast<size_t>(image.height * image.width))
    std::abort();
}

void read_lines(Bytes bytes) {
  for (const PathfinderLine& line : parse_pathfinder_metadata("input", bytes))
    if (line.image.starts_with('/') || line.image.starts_with("../") ||
        (line.label != 0 && line.label != 1))
      std::abort();
}

}  // namespace

/// Any bytes are an image or lines of metadata, or a DataError; the first byte chooses.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Bytes rest(data + 1, size - 1);
  try {
    if (data[0] % 2 == 0)
      read_image(rest);
    else
      read_lines(rest);
  } catch (const lagwise::DataError&) {
  }
  return 0;
}
