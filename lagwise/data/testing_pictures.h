#pragma once

// Support for tests; never part of the library.

// clang-format off
#include <cstdio>  // jpeglib.h asks for it
#include <jpeglib.h>
// clang-format on

#include <zlib.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "lagwise/data/formats/picture.h"

namespace lagwise::testing {

/// A picture as a JPEG, without any thinning of its colours.
inline std::string jpeg_bytes(const data::ColourImage& picture, int quality) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = 3, info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<uint8_t*>(picture.rgb.data()) +
                size_t{info.next_scanline} * info.image_width * 3;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string out(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return out;
}

/// Numbers of 16 bits as a grey PNG that says nothing of gamma.
inline std::string deep_png(uint32_t height, uint32_t width,
                            const std::vector<uint16_t>& numbers) {
  const auto big_endian_text = [](uint64_t number, int bytes) {
    std::string text;
    while (--bytes >= 0) text += static_cast<char>(number >> 8 * bytes);
    return text;
  };
  std::string rows;
  for (size_t i = 0; i < numbers.size(); ++i)
    rows += (i % width ? "" : std::string(1, '\0')) + big_endian_text(numbers[i], 2);
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);
  const auto chunk = [&](const std::string& kind, const std::string& contents) {
    const std::string both = kind + contents;
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(both.data()),
                           static_cast<uInt>(both.size()));
    return big_endian_text(contents.size(), 4) + both + big_endian_text(sum, 4);
  };
  return "\x89PNG\r\n\x1A\n" +
         chunk("IHDR", big_endian_text(width, 4) + big_endian_text(height, 4) +
                           std::string("\x10\0\0\0\0", 5)) +
         chunk("IDAT", packed) + chunk("IEND", "");
}

}  // namespace lagwise::testing
