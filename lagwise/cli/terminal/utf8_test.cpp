#include "lagwise/cli/terminal/utf8.h"

#include <gtest/gtest.h>

namespace lagwise::cli {
namespace {

const std::string kBad = "\xEF\xBF\xBD";

TEST(Utf8, HoldsACharacterBackUntilItIsWhole) {
  Utf8 text;
  EXPECT_EQ(text.feed("a\xC3"), "a");
  EXPECT_EQ(text.feed("\xA9z"), "\xC3\xA9z");  // e acute
  EXPECT_EQ(text.feed("\xF0\x9F"), "");
  EXPECT_EQ(text.feed("\x8E\xB5"), "\xF0\x9F\x8E\xB5");  // a note
  EXPECT_EQ(text.finish(), "");
}

TEST(Utf8, ReplacesWhatIsNoCharacter) {
  EXPECT_EQ(shown_text("a\xFF"
                       "b"),
            "a" + kBad + "b");
  EXPECT_EQ(shown_text("\x80"), kBad);
  EXPECT_EQ(shown_text("\xC3"
                       "a"),
            kBad + "a");
  EXPECT_EQ(shown_text("\xC0\x80"), kBad + kBad);                     // overlong
  EXPECT_EQ(shown_text("\xED\xA0\x80"), kBad + kBad + kBad);          // a surrogate
  EXPECT_EQ(shown_text("\xF4\x90\x80\x80").size(), 4 * kBad.size());  // past the end
  EXPECT_EQ(shown_text("a\xE2\x82"), "a" + kBad);                     // cut off
}

TEST(Utf8, KeepsTerminalsSafe) {
  EXPECT_EQ(shown_text("a\tb\nc"), "a\tb\nc");
  EXPECT_EQ(shown_text("\x1B[2J"), kBad + "[2J");
  EXPECT_EQ(shown_text(std::string(1, '\0')), kBad);
}

TEST(Utf8, DoesNotDependOnWhereTheBytesAreCut) {
  std::string all;
  for (int i = 0; i < 3000; ++i) all += static_cast<char>(i * i * 31 + i / 7);
  all += "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x8E\xB5";
  Utf8 text;
  std::string pieces;
  for (const char c : all) pieces += text.feed({&c, 1});
  EXPECT_EQ(pieces + text.finish(), shown_text(all));
}

}  // namespace
}  // namespace lagwise::cli
