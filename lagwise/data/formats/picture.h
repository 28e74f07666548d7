#pragma once

#include <string>
#include <vector>

#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

/// A picture in colour: rows of pixels, each red, green, blue.
struct ColourImage {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> rgb;
};

/// Reads a PNG (libpng; transparency is set on black, 16 bits become 8 without a change
/// of gamma) or a JPEG (libjpeg), whatever the file is called. DataError for what is neither or damaged; more than 4096 pixels a
/// side are refused before anything is allocated.
ColourImage read_picture(const std::string& file);
ColourImage parse_picture(const std::string& name, Bytes bytes);

/// Whether a file's name is that of a picture: .png, .jpg, .jpeg in any case.
bool is_picture_name(const std::string& file);

/// Whether it is that of a picture in a format that is not read, such as .gif.
bool is_other_picture_name(const std::string& file);

/// The square in the middle, made `side` pixels wide: each new pixel is the mean of the
/// part of the old picture that it covers.
ColourImage squared(const ColourImage& picture, int64_t side);

/// Planes [3, height, width], or [1, height, width] in grey: 0.2989 red + 0.587 green +
/// 0.114 blue.
std::vector<uint8_t> planes_of(const ColourImage& picture, bool colour);

}  // namespace lagwise::data
