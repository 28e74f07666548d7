#include "lagwise/data/text/byte_level.h"

#include <gtest/gtest.h>

#include <set>

namespace lagwise::data {
namespace {

/// The pieces with a bar between them.
std::string pieces(std::string_view text) {
  std::string said;
  while (!text.empty()) {
    const std::string_view piece = first_piece(text);
    EXPECT_FALSE(piece.empty());
    said += (said.empty() ? "" : "|") + std::string(piece);
    text.remove_prefix(piece.size());
  }
  return said;
}

TEST(ByteLevel, CutsTextIntoPiecesAsGpt2Does) {
  EXPECT_EQ(pieces("Hello world"), "Hello| world");
  EXPECT_EQ(pieces("we'll don't 'tis"), "we|'ll| don|'t| '|tis");
  EXPECT_EQ(pieces("in 1984, ok?!"), "in| 1984|,| ok|?!");
  EXPECT_EQ(pieces("a  b"), "a| | b");
  EXPECT_EQ(pieces("a   b"), "a|  | b");
  EXPECT_EQ(pieces("a \n b"), "a| \n| b");
  EXPECT_EQ(pieces("a\n\nb"), "a|\n|\n|b");
  EXPECT_EQ(pieces("a  "), "a|  ");
  EXPECT_EQ(pieces(" "), " ");
  EXPECT_EQ(pieces("\xC3\xA9t\xC3\xA9 \xE2\x82\xAC"),
            "\xC3\xA9t\xC3\xA9| \xE2\x82\xAC");
  EXPECT_EQ(pieces("x\xC2\xA0y"), "x|\xC2\xA0|y");
  EXPECT_EQ(pieces("a\xFF\xFE"
                   "b"),
            "a|\xFF\xFE|b");
  EXPECT_EQ(pieces("s's"), "s|'s");
}

TEST(ByteLevel, WritesEveryByteWithALetterOfItsOwn) {
  const std::set<std::string> letters(byte_letters().begin(), byte_letters().end());
  EXPECT_EQ(letters.size(), 256u);
  EXPECT_EQ(to_byte_letters(" a\n"),
            "\xC4\xA0"
            "a\xC4\x8A");
  EXPECT_EQ(byte_letters()[0xAD], "\xC5\x83");  // the last of those that are not seen
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  EXPECT_EQ(from_byte_letters(to_byte_letters(all)), all);
  EXPECT_FALSE(from_byte_letters(" ").has_value());
  EXPECT_FALSE(from_byte_letters("\xFF").has_value());
}

}  // namespace
}  // namespace lagwise::data
