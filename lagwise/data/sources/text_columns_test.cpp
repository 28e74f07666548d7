#include "lagwise/data/sources/text_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"
#include "lagwise/data/testing_gzip.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

const std::vector<Column> kColumns = {{"", {"text", "sentence"}}, {"", {"label"}}};

/// "good=1;bad=0;"
std::string read(const std::string& name, const std::string& contents,
                 const std::vector<Column>& columns = kColumns) {
  TextColumns table(name, bytes_of(contents), columns);
  std::string said;
  for (std::vector<std::string> row; table.next(row);)
    said += row[0] + "=" + row[1] + ";";
  return said;
}

TEST(TextColumns, ReadTablesAsSpreadsheetsWriteThem) {
  EXPECT_EQ(read("a.csv", "text,label\ngood,1\n\"a, \"\"b\"\"\n\",0\n"),
            "good=1;a, \"b\"\n=0;");
  EXPECT_EQ(read("a.csv", "\xEF\xBB\xBFtext,label\r\ngood,1\r\n"), "good=1;");
  EXPECT_EQ(read("a.csv", "label;sentence\n1;\"so; so\"\n"), "so; so=1;");
  EXPECT_EQ(read("a.csv", "text\tlabel\na, b\tx\n"), "a, b=x;");
  EXPECT_EQ(read("a.tsv", "text\tlabel\n\"quoted\"\tx\n"), "\"quoted\"=x;");
  EXPECT_EQ(read("a.tsv", "text\tlabel\n"), "");
}

TEST(TextColumns, ReadJsonLines) {
  EXPECT_EQ(
      read("a.jsonl",
           "{\"label\": 1, \"text\": \"a\"}\n{\"sentence\":\"b\",\"label\":true}\n"),
      "a=1;b=true;");
}

TEST(TextColumns, AreUnpacked) {
  EXPECT_EQ(read("a.csv.gz", gzip("text;label\na;x\n")), "a=x;");
  EXPECT_EQ(read("a.jsonl.gz", gzip("{\"text\": \"a\", \"label\": 1}\n")), "a=1;");
  EXPECT_EQ(read("a.tsv", gzip("text\tlabel\na\tx\n")), "a=x;");
  const TempFolder folder;
  put(folder / "a.tsv.gz", gzip("text\tlabel\nx\t3\n"));
  TextColumns table(folder / "a.tsv.gz", kColumns);
  std::vector<std::string> row;
  ASSERT_TRUE(table.next(row));
  EXPECT_EQ(row, (std::vector<std::string>{"x", "3"}));
}

TEST(TextColumns, AreNotInUtf16) {
  for (const std::string mark : {"\xFF\xFE", "\xFE\xFF"})
    EXPECT_THAT(data_error([&] { read("a.csv", mark + "text,label"); }),
                HasSubstr("a.csv, byte 0: expected text in UTF-8, got UTF-16 (iconv"));
  EXPECT_THAT(data_error([] { read("a.csv", "PK\x03\x04.."); }),
              HasSubstr("a.csv, byte 0: expected text; this is packed (unzip"));
}

TEST(TextColumns, StandThereOnce) {
  EXPECT_THAT(data_error([] { read("a.csv", "text,label,label\na,1,2\n"); }),
              HasSubstr("a.csv, row 1, byte 0: expected one column named 'label', got "
                        "2"));
  EXPECT_THAT(
      data_error(
          [] { read("a.jsonl", "{\"text\": \"a\", \"label\": 1, \"label\": 2}\n"); }),
      HasSubstr("a.jsonl, line 1, byte 32: expected one JSON object a line: byte 32: "
                "expected each key once, got 'label' twice"));
  EXPECT_EQ(read("a.csv", "text,label,,\na,1,,\n"), "a=1;");
}

TEST(TextColumns, TakeTheNamesAskedFor) {
  EXPECT_EQ(read("a.csv", "text,label,stars\na,x,5\n", {{"text", {}}, {"stars", {}}}),
            "a=5;");
}

TEST(TextColumns, NameFileAndRow) {
  EXPECT_THAT(
      data_error([] { read("a.csv", "body;stars\nx;1\n"); }),
      HasSubstr("a.csv, row 1, byte 0: expected a header with a column named one "
                "of text, sentence, with semicolons between; got body, stars"));
  EXPECT_THAT(data_error([] { read("a.csv", "text,label\na,1\nb\n"); }),
              HasSubstr("a.csv, row 3, byte 15: expected 2 fields as in the first row, "
                        "got 1"));
  EXPECT_THAT(data_error([] { read("a.csv", "text,label\n\"a,1\n"); }),
              HasSubstr("a.csv, row 2, byte 11: expected a closing quote"));
  EXPECT_THAT(data_error([] { read("a.tsv", "text\tlabel\na\xFF\t1\n"); }),
              HasSubstr("a.tsv, row 2, byte 11: expected text in UTF-8"));
  EXPECT_THAT(data_error([] { read("a.csv", ""); }),
              HasSubstr("a.csv: expected a table with a header, got nothing"));
  EXPECT_THAT(
      data_error([] { read("a.jsonl", "{\"text\": \"a\"}\n"); }),
      HasSubstr("a.jsonl, line 1, byte 0: expected an object with a text at one "
                "of label"));
  EXPECT_THAT(data_error([] { TextColumns("none.csv", kColumns); }),
              HasSubstr("none.csv"));
}

TEST(TextColumns, ReadFiles) {
  const TempFolder folder;
  put(folder / "a.tsv", "text\tlabel\nx\t3\n");
  TextColumns table(folder / "a.tsv", kColumns);
  std::vector<std::string> row;
  ASSERT_TRUE(table.next(row));
  EXPECT_EQ(row, (std::vector<std::string>{"x", "3"}));
  EXPECT_EQ(table.row(), 2);
  EXPECT_FALSE(table.next(row));
}

}  // namespace
}  // namespace lagwise::data
