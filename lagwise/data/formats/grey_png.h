#pragma once

#include <string>
#include <vector>

#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

/// An image in grey, row by row.
struct GreyImage {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;
};

/// Reads a PNG (libpng); colours become grey, transparency is set on black, 16 bits
/// become 8 without a change of gamma. DataError for what is no PNG or damaged; more than 4096 pixels a side are refused before
/// anything is allocated.
GreyImage read_grey_png(const std::string& file);
GreyImage parse_grey_png(const std::string& name, Bytes bytes);

/// The image as a PNG.
std::string grey_png(const GreyImage& image);

}  // namespace lagwise::data
