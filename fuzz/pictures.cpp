#include <cstdlib>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/picture.h"

/// Any bytes are a PNG, a JPEG or a DataError; a picture that is read has all its
/// pixels, and can be made smaller.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lagwise::data;
  try {
    const ColourImage image = parse_picture("input", {data, size});
    if (static_cast<int64_t>(image.rgb.size()) != 3 * image.height * image.width)
      std::abort();
    if (image.height * image.width > 65536) return 0;
    if (squared(image, 3).rgb.size() != 27) std::abort();
    if (planes_of(image, false).size() * 3 != image.rgb.size()) std::abort();
  } catch (const lagwise::DataError&) {
  }
  return 0;
}
