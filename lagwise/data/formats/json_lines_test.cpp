#include "lagwise/data/formats/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

/// The texts at "text", each with its line: "1:a 3:b ".
std::string read(const std::string& lines) {
  JsonLines reader("a.jsonl", bytes_of(lines));
  std::string said;
  for (nlohmann::json row; reader.next(row);)
    said += std::to_string(reader.line()) + ":" + reader.text(row, "text") + " ";
  return said;
}

TEST(JsonLines, ReadsAnObjectALine) {
  EXPECT_EQ(read("{\"text\": \"a\", \"n\": 1.5}\n\n{\"text\":\"b\"}\r\n"), "1:a 3:b ");
  EXPECT_EQ(read("\xEF\xBB\xBF{\"text\": \"a\"}"), "1:a ");
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read("\n \n"), "");
}

TEST(JsonLines, NamesTheLine) {
  const std::string good = "{\"text\": \"a\"}\n";
  EXPECT_THAT(data_error([&] { read(good + "{\"text\": 3}\n"); }),
              HasSubstr("a.jsonl, line 2, byte 14: expected a text at 'text'"));
  EXPECT_THAT(data_error([&] { read(good + "[]\n"); }),
              HasSubstr("a.jsonl, line 2, byte 14: expected an object"));
  EXPECT_THAT(data_error([&] { read(good + good + "{\"text\"\n"); }),
              HasSubstr("a.jsonl, line 3, byte"));
  EXPECT_THAT(data_error([&] { read("{\"text\": \"\xFF\"}"); }),
              HasSubstr("a.jsonl, line 1, byte"));
}

}  // namespace
}  // namespace lagwise::data
