#include "lagwise/cli/generate/asked_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace lagwise::testing;

TEST(AskedText, IsWhatAFileHolds) {
  const TempFolder folder;
  put(folder / "a", "one\ntwo\n");
  EXPECT_EQ(asked_text(folder / "a"), "one\ntwo\n");
  EXPECT_THAT(data_error([&] { asked_text(folder / "b"); }),
              HasSubstr("b: expected a readable file"));
  EXPECT_THAT(data_error([&] { asked_text(folder.path().string()); }),
              HasSubstr("expected a readable file, got a folder"));
  put(folder / "noise", std::string("\x9C\0\xFF", 3));
  EXPECT_THAT(data_error([&] { asked_text(folder / "noise"); }),
              HasSubstr("noise, byte 1: expected text, got a byte 0"));
}

TEST(AskedText, IsAnsweredLineByLine) {
  EXPECT_THAT(asked_lines("f", "a b\r\nc", 9), ElementsAre("a b", "c"));
  EXPECT_THAT(data_error([] { asked_lines("f", "a\n\nb\n", 9); }),
              HasSubstr("f, line 2: expected a source, got an empty line"));
  EXPECT_THAT(data_error([] { asked_lines("f", "a\n\xE4\n", 9); }),
              HasSubstr("f, line 2: expected text in UTF-8"));
  EXPECT_THAT(data_error([] { asked_lines("f", "", 9); }),
              HasSubstr("f: expected 1 to 9 sources, one a line, got 0"));
  EXPECT_THAT(data_error([] { asked_lines("f", "a\nb\n", 1); }), HasSubstr("got 2"));
}

}  // namespace
}  // namespace lagwise::cli
