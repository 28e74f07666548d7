#include "lagwise/data/formats/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/formats/grey_png.h"
#include "lagwise/data/testing_files.h"
#include "lagwise/data/testing_pictures.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

ColourImage ramp(int64_t height, int64_t width) {
  ColourImage picture{height, width, {}};
  for (int64_t i = 0; i < height * width; ++i)
    for (const int64_t slope : {1, 2, 3})
      picture.rgb.push_back(static_cast<uint8_t>(40 + slope * i % 100));
  return picture;
}

TEST(Picture, IsReadFromPng) {
  const GreyImage grey{2, 3, {0, 50, 100, 150, 200, 255}};
  const ColourImage picture = parse_picture("a.png", bytes_of(grey_png(grey)));
  EXPECT_EQ(picture.height, 2);
  EXPECT_EQ(picture.width, 3);
  EXPECT_EQ(planes_of(picture, false), grey.pixels);
  EXPECT_EQ(planes_of(picture, true).size(), 18u);
}

TEST(Picture, IsReadFromPngOf16BitsWithoutAChangeOfGamma) {
  const std::string deep = deep_png(2, 3, {0, 0x3200, 0x6464, 0x9696, 0xC8C8, 0xFFFF});
  const std::vector<uint8_t> wanted = {0, 50, 100, 150, 200, 255};
  EXPECT_EQ(planes_of(parse_picture("a.png", bytes_of(deep)), false), wanted);
  EXPECT_EQ(parse_grey_png("a.png", bytes_of(deep)).pixels, wanted);
}

TEST(Picture, IsReadFromJpegWithItsLosses) {
  const ColourImage picture = ramp(16, 24);
  const ColourImage read = parse_picture("a.jpg", bytes_of(jpeg_bytes(picture, 95)));
  ASSERT_EQ(read.height, 16);
  ASSERT_EQ(read.width, 24);
  double difference = 0;
  for (size_t i = 0; i < read.rgb.size(); ++i)
    difference += std::abs(read.rgb[i] - picture.rgb[i]);
  EXPECT_LT(difference / static_cast<double>(read.rgb.size()), 12);
}

TEST(Picture, CutAnywhereItIsRefused) {
  const std::string jpeg = jpeg_bytes(ramp(16, 16), 80);
  for (size_t size = 0; size + 2 < jpeg.size(); size += 7)
    EXPECT_THROW(parse_picture("x", bytes_of(jpeg.substr(0, size))), DataError) << size;
  const std::string png = grey_png({9, 9, std::vector<uint8_t>(81, 7)});
  for (size_t size = 0; size + 12 < png.size(); ++size)
    EXPECT_THROW(parse_picture("x", bytes_of(png.substr(0, size))), DataError) << size;
}

TEST(Picture, NamesWhatIsNone) {
  EXPECT_THAT(data_error([] { parse_picture("a.png", bytes_of("GIF89a")); }),
              HasSubstr("a.png, byte 0: expected a PNG or a JPEG image"));
  EXPECT_THAT(
      data_error([] { parse_picture("a.jpg", bytes_of("\xFF\xD8\xFFrubbish")); }),
      HasSubstr("a.jpg: expected a JPEG image: "));
  std::string wide = jpeg_bytes(ramp(8, 8), 80);
  const size_t frame = wide.find("\xFF\xC0");  // then length, precision, height, width
  wide[frame + 5] = '\x7F';
  EXPECT_THAT(
      data_error([&] { parse_picture("a.jpg", bytes_of(wide)); }),
      HasSubstr("a.jpg: expected a picture of 1 to 4096 pixels a side, got 8 x"));
}

TEST(Picture, IsCutToItsMiddleAndMadeSmaller) {
  ColourImage picture{2, 6, {}};
  for (int i = 0; i < 12; ++i)
    for (int c = 0; c < 3; ++c) picture.rgb.push_back(static_cast<uint8_t>(i * 10 + c));
  const ColourImage same = squared(picture, 2);  // columns 2 and 3
  EXPECT_EQ(planes_of(same, true),
            (std::vector<uint8_t>{20, 30, 80, 90, 21, 31, 81, 91, 22, 32, 82, 92}));
  EXPECT_EQ(squared(picture, 1).rgb, (std::vector<uint8_t>{55, 56, 57}));
  EXPECT_EQ(squared(picture, 4).rgb.size(), 48u);
  EXPECT_EQ(squared(picture, 4).rgb[0], 20);
  const ColourImage odd = squared(ramp(3, 3), 2);  // a new pixel covers 1.5 x 1.5
  const auto at = [](int i) { return 40.0 + i % 100; };
  EXPECT_NEAR(odd.rgb[0], (at(0) + at(1) / 2 + at(3) / 2 + at(4) / 4) / 2.25, 0.51);
}

TEST(Picture, IsKnownByItsName) {
  for (const char* name : {"a.png", "b/c.JPG", "d.jpeg"})
    EXPECT_TRUE(is_picture_name(name)) << name;
  EXPECT_FALSE(is_picture_name("a.gif"));
  EXPECT_TRUE(is_other_picture_name("a.GIF"));
  EXPECT_FALSE(is_other_picture_name("a.png"));
}

}  // namespace
}  // namespace lagwise::data
