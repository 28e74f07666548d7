#include "lagwise/data/formats/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "lagwise/data/testing_files.h"
#include "lagwise/data/testing_gzip.h"

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace lagwise::testing;
using namespace std::string_literals;

const std::string kImages = "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03"s + "abcdef";

IdxArray parse(const std::string& file) { return parse_idx("x.idx", bytes_of(file)); }
std::string complaint(const std::string& file) {
  return data_error([&] { parse(file); });
}

TEST(Idx, ReadsAnArrayPlainOrPacked) {
  for (const std::string& file : {kImages, gzip(kImages)}) {
    const IdxArray array = parse(file);
    EXPECT_THAT(array.shape, ElementsAre(2, 1, 3));
    EXPECT_EQ(array.size(), 2);
    EXPECT_EQ(text_of(array.item(1)), "def");
  }
  EXPECT_EQ(parse("\0\0\x08\x01\0\0\0\0"s).size(), 0);
}

TEST(Idx, RefusesDamage) {
  for (const std::string& file : {kImages, gzip(kImages)})
    for (size_t length = 0; length < file.size(); ++length)
      EXPECT_THROW(parse(file.substr(0, length)), DataError) << length;
  EXPECT_THAT(complaint(kImages + "x"),
              HasSubstr("byte 22: expected the end of the file"));
  EXPECT_THAT(complaint("\0\1\x08\x01\0\0\0\0"s),
              HasSubstr("byte 0: expected two zeros"));
  EXPECT_THAT(complaint("\0\0\x0D\x01\0\0\0\0"s), HasSubstr("byte 2: expected type 8"));
  EXPECT_THAT(complaint("\0\0\x08\x05\0\0\0\0"s), HasSubstr("byte 3: expected 1 to 4"));
  EXPECT_THAT(complaint("\0\0\x08\x02\0\0\0\1\0\0\0\0"s),
              HasSubstr("byte 8: expected a size"));
  EXPECT_THAT(complaint("\0\0\x08\x02\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s),
              HasSubstr("at most 256 MB"));
}

TEST(Idx, ReadsMnist) {
  const TempFolder scratch;
  const std::string folder = real_data("mnist", scratch);
  LAGWISE_NEEDS_DATA(folder, "mnist");
  const IdxArray images = read_idx(folder + "/t10k-images-idx3-ubyte.gz");
  const IdxArray labels = read_idx(folder + "/t10k-labels-idx1-ubyte.gz");
  EXPECT_EQ(images.shape[0], labels.shape[0]);
  EXPECT_EQ(images.shape[1] * images.shape[2], 784);
  EXPECT_EQ(labels.item(0)[0], 7);  // the first digit of the test set
  const double mean = std::accumulate(images.bytes.begin(), images.bytes.end(), 0.0) /
                      static_cast<double>(images.bytes.size());
  EXPECT_NEAR(mean, 33.8, 1);
}

}  // namespace
}  // namespace lagwise::data
