#include "lagwise/data/text/code_point.h"

#include <gtest/gtest.h>

namespace lagwise::data {
namespace {

TEST(CodePoint, ReadsWhatItWrites) {
  for (uint32_t code = 0; code <= 0x10FFFF; code += code < 0x3000 ? 1 : 61) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_utf8(text, code);
    const CodePoint point = first_code_point(text + "x");
    ASSERT_TRUE(point.valid) << code;
    ASSERT_EQ(point.code, code);
    ASSERT_EQ(point.bytes, text.size());
  }
}

TEST(CodePoint, TakesWhatIsNoUtf8AsSingleBytes) {
  for (const char* text :
       {"\x80", "\xC3", "\xC3(", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80",
        "\xF5\x80\x80\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\xFF"}) {
    EXPECT_FALSE(first_code_point(text).valid) << text;
    EXPECT_EQ(first_code_point(text).bytes, 1u);
    EXPECT_FALSE(is_utf8(std::string("a") + text));
  }
  EXPECT_TRUE(is_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8E\xB5"));
  EXPECT_TRUE(is_utf8(""));
}

TEST(CodePoint, MayBeCutThroughWhereABeginningEnds) {
  const std::string text =
      "ab\xF0\x9F\x8E\xB5"
      "c\xFF";
  for (size_t most = 0; most <= 7; ++most)
    EXPECT_TRUE(begins_as_utf8(text, most)) << most;
  EXPECT_FALSE(begins_as_utf8(text, 8));
  EXPECT_FALSE(begins_as_utf8(text, 100));
  EXPECT_FALSE(
      begins_as_utf8("\xFF"
                     "abcdefgh",
                     4));
  EXPECT_FALSE(begins_as_utf8("a\xC3", 2));  // whole, not cut
}

TEST(CodePoint, KnowsLettersNumbersAndBlanks) {
  for (const uint32_t letter :
       {0x41U, 0x7AU, 0xE9U, 0x3B1U, 0x4E00U, 0x9FFFU, 0x20000U})
    EXPECT_TRUE(is_letter(letter) && !is_number(letter) && !is_blank(letter)) << letter;
  for (const uint32_t number : {0x30U, 0x39U, 0xB2U, 0xBDU, 0x660U, 0x2160U})
    EXPECT_TRUE(is_number(number) && !is_letter(number)) << number;
  for (const uint32_t blank : {0x20U, 0x9U, 0xAU, 0xA0U, 0x3000U, 0x2028U})
    EXPECT_TRUE(is_blank(blank) && !is_letter(blank)) << blank;
  for (const uint32_t other : {0x21U, 0x5FU, 0xD7U, 0x300U, 0x200BU, 0x20ACU, 0x1F3B5U})
    EXPECT_FALSE(is_blank(other) || is_letter(other) || is_number(other)) << other;
}

}  // namespace
}  // namespace lagwise::data
