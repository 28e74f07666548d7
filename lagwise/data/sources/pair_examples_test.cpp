#include "lagwise/data/sources/pair_examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"
#include "lagwise/data/text/token_kind.h"

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace lagwise::testing;

struct PairExamples : ::testing::Test {
  const TempFolder folder;

  /// "train:ab>ba@2;" for each pair
  static std::string read(const PairReading& reading) {
    std::string said;
    read_pairs(reading, [&](const Pair& pair) {
      said += std::string(pair.split) + ":" + std::string(pair.source) + ">" +
              std::string(pair.target) + "@" + std::to_string(pair.row) + ";";
    });
    return said;
  }
  std::string complaint(const std::string& name, const std::string& contents) const {
    put(folder / name, contents);
    return data_error([&] { read({.path = folder / name}); });
  }
};

TEST_F(PairExamples, AreTheRowsOfOneTable) {
  put(folder / "a.tsv", "source\ttarget\nab\tba\nc d\td c\n");
  EXPECT_EQ(read({.path = folder / "a.tsv"}), "train:ab>ba@2;train:c d>d c@3;");
  put(folder / "a.csv", "\xEF\xBB\xBFid;tgt;src\r\n1;\"x;\";y\r\n");
  EXPECT_EQ(read({.path = folder / "a.csv"}), "train:y>x;@2;");
  put(folder / "a.jsonl", "{\"input\": \"\\u00e4\", \"output\": 7}\n");
  EXPECT_EQ(read({.path = folder / "a.jsonl"}), "train:\xC3\xA4>7@1;");
}

TEST_F(PairExamples, AreDealtWhereNoFileSaysTheSplit) {
  put(folder / "a.tsv", "en\tde\na\tb\nc\td\ne\tf\ng\th\n");
  EXPECT_EQ(read({.path = folder / "a.tsv",
                  .valid = 0.25,
                  .test = 0.25,
                  .source_column = "en",
                  .target_column = "de"}),
            "train:a>b@2;train:c>d@3;test:e>f@4;valid:g>h@5;");
}

TEST_F(PairExamples, AreTablesByTheirNamesOfSplits) {
  put(folder / "t/train.tsv", "source\ttarget\na\tb\nc\td\n");
  put(folder / "t/test.csv", "source,target\ne,f\n");
  EXPECT_EQ(read({.path = folder / "t", .valid = 0.5}),
            "train:a>b@2;valid:c>d@3;test:e>f@2;");
  put(folder / "t/dev.jsonl", "{\"source\": \"g\", \"target\": \"h\"}\n");
  EXPECT_EQ(read({.path = folder / "t", .valid = 0.5}),
            "train:a>b@2;train:c>d@3;valid:g>h@1;test:e>f@2;");
}

TEST_F(PairExamples, NameTheFileAndTheRowOfWhatIsWrong) {
  EXPECT_THAT(complaint("a.tsv", ""),
              HasSubstr("a.tsv: expected a table with a header, got nothing"));
  EXPECT_THAT(complaint("b.tsv", "source\ttarget\n"),
              HasSubstr("b.tsv: expected rows with a source and a target, got none"));
  EXPECT_THAT(complaint("a.jsonl", ""),
              HasSubstr("a.jsonl: expected rows with a source and a target, got none"));
  EXPECT_THAT(complaint("c.csv", "text,label\na,b\n"),
              HasSubstr("c.csv, row 1, byte 0: expected a header with a column named "
                        "one of source, src, input, with commas between; got text, "
                        "label"));
  EXPECT_THAT(
      complaint("d.csv", "source,target\na,b\n,c\n"),
      HasSubstr("d.csv, row 3, byte 18: expected a source, got an empty field"));
  EXPECT_THAT(
      complaint("e.tsv", "source\ttarget\na\t\n"),
      HasSubstr("e.tsv, row 2, byte 14: expected a target, got an empty field"));
  EXPECT_THAT(complaint("f.tsv", "source\ttarget\na\t\xFF\n"),
              HasSubstr("f.tsv, row 2, byte 14: expected text in UTF-8"));
  EXPECT_THAT(complaint("g.jsonl", "{\"source\": \"a\"}\n"), HasSubstr("g.jsonl"));
  EXPECT_THAT(complaint("h.tsv", "source\ttarget\na\tb\tc\n"), HasSubstr("row 2"));
  put(folder / "t/valid.tsv", "source\ttarget\na\tb\n");
  EXPECT_THAT(data_error([&] { read({.path = folder / "t"}); }),
              HasSubstr("t: expected train.tsv, .csv or .jsonl in the folder"));
  EXPECT_THAT(data_error([&] { read({.path = folder / "none.tsv"}); }),
              HasSubstr("none.tsv: expected"));
}

TEST_F(PairExamples, AreBytes) {
  const Pair pair{"train", "ab", "\xC3\xA4", "", 0};
  const Example bytes = pair_example(pair);
  EXPECT_THAT(bytes.first, ElementsAre('a', 'b'));
  EXPECT_THAT(bytes.second, ElementsAre(0xC3, 0xA4));
}

}  // namespace
}  // namespace lagwise::data
