#include "lagwise/data/formats/picture.h"

// clang-format off
#include <cstdio>  // jpeglib.h asks for it
#include <jpeglib.h>
// clang-format on
#include <png.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/mapped_file.h"

namespace lagwise::data {
namespace {

constexpr uint32_t kMostPictureSide = 4096;

void check_size(const std::string& name, uint32_t width, uint32_t height) {
  if (width < 1 || height < 1 || width > kMostPictureSide || height > kMostPictureSide)
    throw DataError(name, -1,
                    "a picture of 1 to 4096 pixels a side, got " +
                        std::to_string(width) + " x " + std::to_string(height));
}

ColourImage parse_png(const std::string& name, Bytes bytes) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const struct Freed {
    png_image* image;
    ~Freed() { png_image_free(image); }
  } freed{&image};
  const auto require = [&](bool holds) {
    if (!holds) throw DataError(name, -1, "a PNG image: " + std::string(image.message));
  };
  require(png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) != 0);
  check_size(name, image.width, image.height);
  image.format = PNG_FORMAT_RGB;
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // else 16 bits are taken for light
  ColourImage picture{image.height, image.width, {}};
  picture.rgb.resize(PNG_IMAGE_SIZE(image));
  const png_color black{0, 0, 0};
  require(png_image_finish_read(&image, &black, picture.rgb.data(), 0, nullptr) != 0);
  // Damage within the packed pixels is only a warning to libpng.
  require(!PNG_IMAGE_FAILED(image) && image.warning_or_error == 0);
  return picture;
}

/// libjpeg reports through these, and leaves by the jump: no object that would have to
/// be destroyed may live between the two.
struct JpegFailure {
  jpeg_error_mgr manager;  // first: libjpeg knows this part
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

JpegFailure* failure_of(j_common_ptr info) {
  return reinterpret_cast<JpegFailure*>(info->err);
}

void note_jpeg_message(j_common_ptr info) {
  info->err->format_message(info, failure_of(info)->message);
}

[[noreturn]] void leave_jpeg(j_common_ptr info) {
  note_jpeg_message(info);
  std::longjmp(failure_of(info)->jump, 1);
}

/// Calls `work` with a decoder that has read the header; what goes wrong is a message.
class JpegReader {
 public:
  JpegReader(const std::string& name, Bytes bytes) : name_(name) {
    info_.err = jpeg_std_error(&failure_.manager);
    failure_.manager.error_exit = leave_jpeg;
    failure_.manager.output_message = note_jpeg_message;
    failure_.message[0] = '\0';
    if (setjmp(failure_.jump) != 0) fail();
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, bytes.data(), static_cast<unsigned long>(bytes.size()));
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = JCS_RGB;
    info_.dct_method = JDCT_ISLOW;  // the same pixels on every machine
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;

  uint32_t width() const { return info_.image_width; }
  uint32_t height() const { return info_.image_height; }

  void read(uint8_t* rgb) {
    if (setjmp(failure_.jump) != 0) fail();
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = rgb + size_t{info_.output_scanline} * info_.output_width * 3;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    // Missing or damaged data is only a warning to libjpeg.
    if (failure_.manager.num_warnings > 0) fail();
  }

 private:
  [[noreturn]] void fail() {
    const std::string why = failure_.message;
    jpeg_destroy_decompress(&info_);
    throw DataError(name_, -1, "a JPEG image: " + why);
  }

  const std::string& name_;
  jpeg_decompress_struct info_ = {};
  JpegFailure failure_ = {};
};

ColourImage parse_jpeg(const std::string& name, Bytes bytes) {
  JpegReader reader(name, bytes);
  check_size(name, reader.width(), reader.height());
  ColourImage picture{reader.height(), reader.width(), {}};
  picture.rgb.resize(size_t{reader.height()} * reader.width() * 3);
  reader.read(picture.rgb.data());
  return picture;
}

bool has_ending(std::string file, std::initializer_list<const char*> endings) {
  for (char& c : file)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return std::ranges::any_of(
      endings, [&](const char* ending) { return file.ends_with(ending); });
}

}  // namespace

ColourImage parse_picture(const std::string& name, Bytes bytes) {
  const std::string_view text = text_of(bytes);
  if (text.starts_with("\x89PNG")) return parse_png(name, bytes);
  if (text.starts_with("\xFF\xD8\xFF")) return parse_jpeg(name, bytes);
  throw DataError(name, 0, "a PNG or a JPEG image");
}

ColourImage read_picture(const std::string& file) {
  const MappedFile mapped(file);
  return parse_picture(file, mapped.bytes());
}

bool is_picture_name(const std::string& file) {
  return has_ending(file, {".png", ".jpg", ".jpeg"});
}

bool is_other_picture_name(const std::string& file) {
  return has_ending(file, {".gif", ".bmp", ".webp", ".tif", ".tiff", ".heic", ".avif",
                           ".jxl", ".jp2", ".pgm", ".ppm", ".svg"});
}

ColourImage squared(const ColourImage& picture, int64_t side) {
  const int64_t edge = std::min(picture.height, picture.width);
  const int64_t top = (picture.height - edge) / 2, left = (picture.width - edge) / 2;
  // Pixel i of the new side covers [i, i + 1) edge / side of the old one.
  const double step = static_cast<double>(edge) / static_cast<double>(side);
  const auto overlap = [&](int64_t old, double from, double to) {
    const auto at = static_cast<double>(old);
    return std::max(0.0, std::min(at + 1, to) - std::max(at, from));
  };
  ColourImage out{side, side, {}};
  for (int64_t y = 0; y < side; ++y)
    for (int64_t x = 0; x < side; ++x) {
      const double up = static_cast<double>(y) * step, down = up + step;
      const double west = static_cast<double>(x) * step, east = west + step;
      double sums[3] = {0, 0, 0};
      for (auto j = static_cast<int64_t>(up); j < edge && static_cast<double>(j) < down;
           ++j)
        for (auto i = static_cast<int64_t>(west);
             i < edge && static_cast<double>(i) < east; ++i) {
          const double part = overlap(j, up, down) * overlap(i, west, east);
          const auto at =
              static_cast<size_t>(((top + j) * picture.width + left + i) * 3);
          for (size_t c = 0; c < 3; ++c) sums[c] += part * picture.rgb[at + c];
        }
      for (const double sum : sums)
        out.rgb.push_back(
            static_cast<uint8_t>(std::lround(std::min(255.0, sum / (step * step)))));
    }
  return out;
}

std::vector<uint8_t> planes_of(const ColourImage& picture, bool colour) {
  const auto pixels = static_cast<size_t>(picture.height * picture.width);
  std::vector<uint8_t> planes(colour ? 3 * pixels : pixels);
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* rgb = picture.rgb.data() + 3 * i;
    if (colour) {
      for (size_t c = 0; c < 3; ++c) planes[c * pixels + i] = rgb[c];
    } else {
      const double light = 0.2989 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
      planes[i] = static_cast<uint8_t>(light * (255.5 / 255));  // as CIFAR-10's are
    }
  }
  return planes;
}

}  // namespace lagwise::data
