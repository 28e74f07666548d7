#include "lagwise/data/formats/byte_cursor.h"

#include <gtest/gtest.h>

namespace lagwise::data {
namespace {

const uint8_t kBytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

TEST(ByteCursor, ReadsBothByteOrders) {
  EXPECT_EQ(ByteCursor("x", kBytes).big_endian<uint16_t>("a"), 0x0102);
  EXPECT_EQ(ByteCursor("x", kBytes).big_endian<uint32_t>("a"), 0x01020304u);
  EXPECT_EQ(ByteCursor("x", kBytes).little_endian<uint64_t>("a"), 0x0807060504030201u);
}

TEST(ByteCursor, PeeksWithoutMoving) {
  ByteCursor cursor("x", kBytes);
  EXPECT_EQ(cursor.peek("a"), 1);
  EXPECT_EQ(cursor.byte("a"), 1);
  EXPECT_EQ(cursor.offset(), 1u);
}

TEST(ByteCursor, NamesWhatIsMissingAndWhere) {
  ByteCursor cursor("song.mid", Bytes(kBytes).first(3), 20);
  cursor.take(2, "name");
  try {
    cursor.take(4, "header");
    FAIL() << "read past the end";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "song.mid, byte 22: expected 4 bytes of header, the file has 1 more");
  }
  EXPECT_THROW(cursor.take(SIZE_MAX, "length"), DataError);
  EXPECT_EQ(cursor.left(), 1u);
}

}  // namespace
}  // namespace lagwise::data
