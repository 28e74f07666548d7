#include "lagwise/data/sources/text_examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

struct TextExamples : ::testing::Test {
  const TempFolder folder;

  /// "train:bad=0;" for each example
  std::string read(TextReading reading) const {
    std::string said, names;
    const auto classes = read_text_examples(
        reading, [&](const std::string& split, const Example& example, double) {
          said += split + ":" +
                  std::string(example.first.begin(), example.first.end()) + "=" +
                  std::to_string(example.label) + ";";
        });
    for (const std::string& name : classes) names += " " + name;
    return said + names;
  }
  std::string at(const std::string& name) const { return folder / name; }
};

TEST_F(TextExamples, AreReviewsInFoldersWithASliceOfTrainForValidation) {
  for (int i = 0; i < 4; ++i) {
    put(at("imdb/train/neg/" + std::to_string(i) + "_1.txt"), "n" + std::to_string(i));
    put(at("imdb/train/pos/" + std::to_string(i) + "_9.txt"), "p" + std::to_string(i));
  }
  put(at("imdb/test/neg/0_2.txt"), "x");
  put(at("imdb/test/pos/0_8.txt"), "y");
  EXPECT_EQ(read({.path = at("imdb"), .valid = 0.25}),
            "train:n0=0;train:n1=0;train:n2=0;valid:n3=0;"
            "valid:p0=1;train:p1=1;train:p2=1;train:p3=1;test:x=0;test:y=1; neg pos");
}

TEST_F(TextExamples, AreTablesByTheirNamesOfSplits) {
  put(at("t/train.tsv"), "sentence\tlabel\ngood\t1\nbad\t0\n");
  put(at("t/dev.tsv"), "label\tsentence\n1\tfine\n");
  EXPECT_EQ(read({.path = at("t")}), "train:good=1;train:bad=0;valid:fine=1; 0 1");
}

TEST_F(TextExamples, AreDealtToSplitsFromOneFile) {
  std::string table = "review,sentiment\n";
  for (int i = 0; i < 10; ++i) table += "\"a,b\",2\n";
  table += "c,10\n";
  put(at("all.csv"), table);
  const std::string said = read({.path = at("all.csv")});
  EXPECT_THAT(said, HasSubstr("train:a,b=0;"));
  EXPECT_THAT(said, HasSubstr("valid:a,b=0;"));
  EXPECT_THAT(said, HasSubstr("test:a,b=0;"));
  EXPECT_TRUE(said.ends_with("; 2 10")) << said;
}

TEST_F(TextExamples, HaveWordsForLabels) {
  put(at("w.csv"),
      "\xEF\xBB\xBFtext;label\r\nso so;neutral\r\nfine;good\r\nno;bad\r\n");
  EXPECT_EQ(read({.path = at("w.csv"), .valid = 0, .test = 0}),
            "train:so so=2;train:fine=1;train:no=0; bad good neutral");
  put(at("l/train.jsonl"),
      "{\"text\":\"a\",\"label\":\"x\"}\n{\"text\":\"b\",\"label\":\"y\"}\n");
  put(at("l/test.csv"), "label,text\ny,c\n");
  EXPECT_EQ(read({.path = at("l"), .valid = 0}), "train:a=0;train:b=1;test:c=1; x y");
}

TEST_F(TextExamples, TakeTheColumnsAskedFor) {
  put(at("odd.tsv"), "a\tb\nyes\t1\nno\t0\n");
  EXPECT_EQ(read({.path = at("odd.tsv"), .text_column = "a", .label_column = "b"}),
            "train:yes=1;train:no=0; 0 1");
  EXPECT_THAT(
      data_error([&] { read({.path = at("odd.tsv")}); }),
      HasSubstr("odd.tsv, row 1, byte 0: expected a header with a column named one of "
                "text, sentence, review, content"));
}

TEST_F(TextExamples, AreTheRealOnes) {
  const std::string sst = real_data("sst2", folder);
  LAGWISE_NEEDS_DATA(sst, "sst2");
  std::map<std::string, int> rows;
  read_text_examples({.path = sst}, [&](const std::string& split, const Example&,
                                        double) { ++rows[split]; });
  EXPECT_EQ(rows["train"], 6920);
  EXPECT_EQ(rows["valid"], 872);
}

TEST_F(TextExamples, NameWhatIsWrongWithTheFiles) {
  put(at("empty.tsv"), "");
  EXPECT_THAT(data_error([&] { read({.path = at("empty.tsv")}); }),
              HasSubstr("empty.tsv"));
  put(at("head.tsv"), "text\tlabel\n");
  EXPECT_THAT(data_error([&] { read({.path = at("head.tsv")}); }),
              HasSubstr("head.tsv: expected rows of labelled text, got none"));
  put(at("label.tsv"), "text\tlabel\nhello\tgood\n");
  EXPECT_THAT(
      data_error([&] { read({.path = at("label.tsv")}); }),
      HasSubstr("label.tsv: expected at least two different labels, got 'good'"));
  put(at("gap.tsv"), "text\tlabel\nhello\tgood\nbye\t\n");
  EXPECT_THAT(
      data_error([&] { read({.path = at("gap.tsv")}); }),
      HasSubstr("gap.tsv, row 3, byte 22: expected a label, got an empty field"));
  put(at("new/train.tsv"), "text\tlabel\na\tx\nb\ty\n");
  put(at("new/test.tsv"), "text\tlabel\na\tx\nb\tz\n");
  EXPECT_THAT(
      data_error([&] { read({.path = at("new")}); }),
      HasSubstr("test.tsv, row 3, byte 15: expected a label of the training rows, "
                "got 'z'"));
  std::string many = "text\tlabel\n";
  for (int i = 0; i < 1001; ++i) many += "a\t" + std::to_string(i) + "\n";
  put(at("many.tsv"), many);
  EXPECT_THAT(data_error([&] { read({.path = at("many.tsv")}); }),
              HasSubstr("row 1002, byte"));
  EXPECT_THAT(data_error([&] { read({.path = folder.path()}); }),
              HasSubstr("expected train/pos and train/neg, or train.tsv, .csv or"));
  EXPECT_THAT(data_error([&] { read({.path = at("none.tsv")}); }),
              HasSubstr("none.tsv"));
}

}  // namespace
}  // namespace lagwise::data
