#include "lagwise/data/formats/grey_png.h"

#include <png.h>

#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/mapped_file.h"

namespace lagwise::data {
namespace {

constexpr uint32_t kMostSide = 4096;

/// libpng's record of an image that is being read or written.
struct Png {
  png_image image{};

  Png() { image.version = PNG_IMAGE_VERSION; }
  ~Png() { png_image_free(&image); }
  Png(const Png&) = delete;

  std::string problem() const { return image.message; }
};

}  // namespace

GreyImage parse_grey_png(const std::string& name, Bytes bytes) {
  Png png;
  const auto require = [&](bool holds) {
    if (!holds) throw DataError(name, -1, "a PNG image: " + png.problem());
  };
  require(png_image_begin_read_from_memory(&png.image, bytes.data(), bytes.size()) !=
          0);
  if (png.image.width > kMostSide || png.image.height > kMostSide)
    throw DataError(name, -1,
                    "an image of at most 4096 pixels a side, got " +
                        std::to_string(png.image.width) + " x " +
                        std::to_string(png.image.height));
  png.image.format = PNG_FORMAT_GRAY;
  png.image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // else 16 bits are taken for light
  GreyImage image{png.image.height, png.image.width, {}};
  image.pixels.resize(PNG_IMAGE_SIZE(png.image));
  const png_color black{0, 0, 0};
  require(png_image_finish_read(&png.image, &black, image.pixels.data(), 0, nullptr) !=
          0);
  // Damage within the packed pixels is only a warning to libpng.
  require(!PNG_IMAGE_FAILED(png.image) && png.image.warning_or_error == 0);
  return image;
}

GreyImage read_grey_png(const std::string& file) {
  const MappedFile mapped(file);
  return parse_grey_png(file, mapped.bytes());
}

std::string grey_png(const GreyImage& image) {
  Png png;
  png.image.width = static_cast<uint32_t>(image.width);
  png.image.height = static_cast<uint32_t>(image.height);
  png.image.format = PNG_FORMAT_GRAY;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png.image);
  std::string out(bytes, '\0');
  if (!png_image_write_to_memory(&png.image, out.data(), &bytes, 0, image.pixels.data(),
                                 0, nullptr))
    throw std::runtime_error("cannot write a PNG: " + png.problem());
  out.resize(bytes);
  return out;
}

}  // namespace lagwise::data
