#include "lagwise/data/formats/delimited.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace lagwise::testing;
using Rows = std::vector<std::vector<std::string>>;

constexpr Delimiting kCsv{',', true};

Rows read(const std::string& text, Delimiting how = {}) {
  DelimitedReader reader("t.tsv", bytes_of(text), how);
  Rows rows;
  for (std::vector<std::string> row; reader.next(row);) rows.push_back(row);
  return rows;
}

std::string complaint(const std::string& text, Delimiting how = {}) {
  return data_error([&] { read(text, how); });
}

TEST(Delimited, ReadsRowsWithEitherLineEnd) {
  EXPECT_THAT(
      read("a\tb\r\nc\t\n\td"),
      ElementsAre(ElementsAre("a", "b"), ElementsAre("c", ""), ElementsAre("", "d")));
  EXPECT_THAT(read(""), IsEmpty());
  EXPECT_THAT(read("x\n"), ElementsAre(ElementsAre("x")));
  EXPECT_THAT(read("x\n\n"), ElementsAre(ElementsAre("x"), ElementsAre("")));
}

TEST(Delimited, TakesQuotesAsTheyAreMeant) {
  EXPECT_THAT(read("\"a\tb\n"), ElementsAre(ElementsAre("\"a", "b")));
  EXPECT_THAT(read("\"a,\"\"b\"\"\n\",c\r\n\"\",\"d\"\r\n", kCsv),
              ElementsAre(ElementsAre("a,\"b\"\n", "c"), ElementsAre("", "d")));
  EXPECT_THAT(read("a\"b,\"c\"", kCsv), ElementsAre(ElementsAre("a\"b", "c")));
}

TEST(Delimited, SaysWhichRowIsWrong) {
  EXPECT_THAT(complaint("a\tb\nc\n"),
              HasSubstr("byte 4: expected 2 fields as in the first row, got 1"));
  EXPECT_THAT(complaint("a,b\n\"c,d\n", kCsv),
              HasSubstr("byte 4: expected a closing quote"));
  EXPECT_THAT(complaint("\"a\"b,c", kCsv),
              HasSubstr("byte 3: expected the end of the field"));
  EXPECT_THAT(complaint(std::string(1024, '\t')), HasSubstr("at most 1024 fields"));
  EXPECT_THAT(complaint(std::string((16 << 20) + 1, 'x')), HasSubstr("at most 16 MB"));
}

TEST(Delimited, FindsColumnsByName) {
  EXPECT_EQ(DelimitedReader::column({"Source", "Target"}, "Target", "f"), 1u);
  EXPECT_THAT(data_error([] {
                DelimitedReader::column({"a", "b\n"}, "Target", "f");
              }),
              HasSubstr("a column 'Target' in the first row, got a, b?"));
}

}  // namespace
}  // namespace lagwise::data
