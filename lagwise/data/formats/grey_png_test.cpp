#include "lagwise/data/formats/grey_png.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

GreyImage ramp(int64_t height, int64_t width) {
  GreyImage image{height, width, {}};
  for (int64_t i = 0; i < height * width; ++i)
    image.pixels.push_back(static_cast<uint8_t>(i * 7));
  return image;
}

TEST(GreyPng, ComesBackAsItWasWritten) {
  const TempFolder folder;
  for (const auto& [height, width] : {std::pair{1, 1}, {3, 5}, {32, 32}}) {
    const GreyImage image = ramp(height, width);
    put(folder / "a.png", grey_png(image));
    const GreyImage read = read_grey_png(folder / "a.png");
    EXPECT_EQ(read.height, height);
    EXPECT_EQ(read.width, width);
    EXPECT_EQ(read.pixels, image.pixels);
  }
}

TEST(GreyPng, CutAnywhereItIsRefused) {
  const std::string whole = grey_png(ramp(9, 9));
  // The last chunk says only that it is the last.
  for (size_t size = 0; size + 12 < whole.size(); ++size)
    EXPECT_THROW(parse_grey_png("x", bytes_of(whole.substr(0, size))), DataError)
        << size;
}

TEST(GreyPng, DamagedAnywhereItIsRefusedOrReadWhole) {
  const std::string whole = grey_png(ramp(9, 9));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    try {
      EXPECT_EQ(parse_grey_png("x", bytes_of(damaged)).pixels, ramp(9, 9).pixels) << i;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("x: expected "));
    }
  }
}

TEST(GreyPng, TooLargeItIsRefusedBeforeItIsUnpacked) {
  const std::string wide = grey_png({1, 5000, std::vector<uint8_t>(5000)});
  EXPECT_THAT(
      data_error([&] { parse_grey_png("x", bytes_of(wide)); }),
      HasSubstr("expected an image of at most 4096 pixels a side, got 5000 x 1"));
}

}  // namespace
}  // namespace lagwise::data
