#include "lagwise/data/formats/toml_entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using lagwise::testing::data_error;

std::vector<TomlEntry> read(const std::string& text) {
  return read_toml("a.toml", bytes_of(text));
}

TEST(TomlEntries, NameEachValueByItsTablesAndLine) {
  const auto entries = read(
      "title = \"x\"\n"
      "[train]\n"
      "steps = 10  # of many\n"
      "lr = 3e-3\n"
      "tied.really = true\n"
      "[model]\n"
      "grid = [3,\n 4]\n");
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_EQ(entries[0].key, "title");
  EXPECT_EQ(std::get<std::string>(entries[0].value), "x");
  EXPECT_EQ(entries[1].key, "train.steps");
  EXPECT_EQ(std::get<int64_t>(entries[1].value), 10);
  EXPECT_EQ(entries[1].line, 3);
  EXPECT_EQ(std::get<double>(entries[2].value), 3e-3);
  EXPECT_EQ(entries[3].key, "train.tied.really");
  EXPECT_TRUE(std::get<bool>(entries[3].value));
  EXPECT_EQ(std::get<std::vector<int64_t>>(entries[4].value),
            (std::vector<int64_t>{3, 4}));
}

TEST(TomlEntries, RefuseWhatIsNoToml) {
  using ::testing::StartsWith;
  EXPECT_THAT(data_error([] { read("\n\nsteps = = 3"); }),
              StartsWith("a.toml, line 3: expected TOML: "));
  EXPECT_THAT(data_error([] { read("a = 1\na = 2"); }),
              StartsWith("a.toml, line 2: expected TOML: "));
  EXPECT_THAT(data_error([] { read("a = \"x\xff\""); }),
              StartsWith("a.toml, line 1: expected TOML: "));
  EXPECT_THAT(data_error([] { read("a = 1979-05-27T`07:32:00Z"); }),
              StartsWith("a.toml, line 1: expected TOML: "));
  EXPECT_EQ(data_error([] { read("a = 1979-05-27"); }),
            "a.toml, line 1: expected 'a' to be text, a number, true, false or a list "
            "of whole numbers");
  EXPECT_THAT(data_error([] { read("x.a = [1, [2]]"); }),
              StartsWith("a.toml, line 1: expected 'x.a' to be"));
  EXPECT_THAT(data_error([] { read("a.a.a.a.a.a.a.a.a.a.a = 1"); }),
              StartsWith("a.toml, line 1: expected fewer tables"));
  EXPECT_EQ(data_error([] { read(std::string(2 << 20, '\n')); }),
            "a.toml: expected at most 1 MB of TOML");
}

TEST(TomlEntries, HaveLettersBeyondAsciiInQuotesAndCommentsAlone) {
  const auto entries = read(
      "\xEF\xBB\xBF# \u00fcber\n"
      "a = \"\u00fc \\\" \u00fc\"  # \u00fc \" \u00fc\n"
      "b = '\u00fc \\'\n"
      "\"\u00fc\" = 1\n"
      "c = \"\"\"\u00fc \" \n\u00fc\"\"\"\n");
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(std::get<std::string>(entries[0].value), "\u00fc \" \u00fc");
  EXPECT_EQ(entries[2].key, "\u00fc");
  for (const char* text : {"a = 1\n\u00fc = 2", "a = 1\n[\u00b5]", "a = 1\nb = 1\u00b7",
                           "a = '\nb\u0300 = 1", "a = 1\n\xf0\x90\x80\x80 = 1"})
    EXPECT_EQ(data_error([&] { read(text); }),
              "a.toml, line 2: expected letters beyond ASCII to stand in quotes or "
              "comments");
}

/// Debian's parser, left alone with these, looks at letters inside of quotes behind what it
/// does not understand, and does what it calls unreachable.
TEST(TomlEntries, RefuseWhatIsNoValueWhateverStandsBehindIt) {
  for (const char* text :
       {"a = 792\x01 'two \u027f'", "a = 1-> \"\u027f\"", "a = 5-\"\u00b5\" # \u0301"})
    EXPECT_THAT(data_error([&] { read(text); }),
                ::testing::StartsWith("a.toml, line 1: expected TOML: "));
}

TEST(TomlEntries, GiveTextBackAsItWasWritten) {
  for (const std::string text : {"", "plain", "\"quoted\" \\ \n\t\x7f", "ünï",
                                 "zz41 \u00fc z", "\u1680\u2003\U0001f3b5"}) {
    const auto entries = read("a = " + toml_text(text));
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(std::get<std::string>(entries[0].value), text);
  }
}

}  // namespace
}  // namespace lagwise::data
