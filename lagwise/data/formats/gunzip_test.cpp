#include "lagwise/data/formats/gunzip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"
#include "lagwise/data/testing_gzip.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

std::string unpack(const std::string& packed, size_t most = 10000000) {
  const std::vector<uint8_t> out = gunzip("a.gz", bytes_of(packed), most);
  return std::string(text_of(out));
}

TEST(Gunzip, Unpacks) {
  std::string text(3000000, 'x');
  for (size_t i = 0; i < text.size(); i += 7) text[i] = static_cast<char>(i * i >> 4);
  EXPECT_EQ(unpack(gzip(text)), text);
  EXPECT_EQ(unpack(gzip("")), "");
  EXPECT_EQ(unpack(gzip("one ") + gzip("two")), "one two");
}

TEST(Gunzip, RefusesTooMuch) {
  const std::string bomb = gzip(std::string(100000, '\0'));
  EXPECT_EQ(unpack(bomb, 100000).size(), 100000u);
  EXPECT_THAT(data_error([&] { unpack(bomb, 99999); }),
              HasSubstr("at most 99999 bytes"));
}

TEST(Gunzip, RefusesDamage) {
  const std::string packed = gzip("some text that is packed");
  for (size_t length = 0; length < packed.size(); ++length)
    EXPECT_THROW(unpack(packed.substr(0, length)), DataError) << length;
  std::string wrong = packed;
  wrong[wrong.size() - 6] ^= 1;  // the checksum
  EXPECT_THAT(data_error([&] { unpack(wrong); }), HasSubstr("gzip data"));
  EXPECT_THROW(unpack(packed + "junk"), DataError);
}

}  // namespace
}  // namespace lagwise::data
