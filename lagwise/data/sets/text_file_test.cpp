#include "lagwise/data/sets/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"
#include "lagwise/data/testing_gzip.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

struct TextFiles : ::testing::Test {
  const TempFolder folder;

  std::string read(const std::string& name, const std::string& contents) const {
    put(folder / name, contents);
    return std::string(text_of(TextFile(folder / name).bytes()));
  }
};

TEST_F(TextFiles, AreTheirBytes) {
  EXPECT_EQ(read("a.txt", "a\xFF\n"), "a\xFF\n");
  EXPECT_EQ(read("a.txt", ""), "");
}

TEST_F(TextFiles, AreUnpacked) {
  EXPECT_EQ(read("a.txt.gz", gzip("some text")), "some text");
  EXPECT_EQ(read("a.jsonl.gz", gzip("{\"text\": \"one\"}\n")), "one\n");
  EXPECT_THAT(data_error([&] { read("b.txt.gz", gzip("some text").substr(0, 20)); }),
              HasSubstr("b.txt.gz, byte"));
  EXPECT_THAT(data_error([&] { read("c.txt", "PK\x03\x04..."); }),
              HasSubstr("c.txt, byte 0: expected text; this is packed (unzip"));
}

TEST_F(TextFiles, HaveNoByteZeroUnlessTheyAreUtf8) {
  EXPECT_EQ(read("a.txt", std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_THAT(data_error([&] { read("a.png", std::string("\x89PNG\0", 5)); }),
              HasSubstr("a.png, byte 4: expected text, got a byte 0"));
  EXPECT_THAT(data_error([&] { read("a.txt.gz", gzip(std::string("a\0\xFF", 3))); }),
              HasSubstr("a.txt.gz, byte 1: expected text"));
}

TEST_F(TextFiles, AreTheTextsOfJsonLines) {
  EXPECT_EQ(read("a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"tw\\u00f6\\n\"}\n"),
            "one\ntw\xC3\xB6\n");
  EXPECT_THAT(data_error([&] { read("b.jsonl", "{\"text\": \"one\"}\n{}\n"); }),
              HasSubstr("b.jsonl, line 2, byte 16: expected a text at 'text'"));
}

TEST_F(TextFiles, AreKnownByTheirNames) {
  for (const char* name : {"a.txt", "b/c.txt.gz", "d.jsonl", "e.jsonl.gz"})
    EXPECT_TRUE(is_text_name(name)) << name;
  for (const char* name : {"a.md", "txt", "b.gz", "c.json"})
    EXPECT_FALSE(is_text_name(name)) << name;
}

}  // namespace
}  // namespace lagwise::data
