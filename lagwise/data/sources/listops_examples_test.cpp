#include "lagwise/data/sources/listops_examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lagwise/data/sources/listops_expression.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

using Rows = std::vector<std::pair<std::string, Example>>;

ListopsMaking small(int64_t train) {
  return {.train = train, .valid = 3, .test = 4, .seed = 7, .rules = {4, 4, 5, 40}};
}

Rows made(const ListopsMaking& making) {
  Rows rows;
  make_listops_examples(making, [&](const std::string& split, const Example& example,
                                    double) { rows.emplace_back(split, example); });
  return rows;
}

Rows read(const std::string& path) {
  Rows rows;
  read_listops_examples(path, [&](const std::string& split, const Example& example,
                                  double) { rows.emplace_back(split, example); });
  return rows;
}

TEST(ListopsExamples, HaveTheSizesAskedForAndTrueLabels) {
  std::map<std::string, int> counts;
  for (const auto& [split, example] : made(small(20))) {
    ++counts[split];
    EXPECT_EQ(listops_value(example.first), example.label);
  }
  EXPECT_EQ(counts,
            (std::map<std::string, int>{{"train", 20}, {"valid", 3}, {"test", 4}}));
}

TEST(ListopsExamples, NeverComeTwice) {
  std::set<std::vector<int32_t>> seen;
  for (const auto& [split, example] : made(small(50)))
    EXPECT_TRUE(seen.insert(example.first).second);
}

TEST(ListopsExamples, KeepValidAndTestWhenTrainGrows) {
  const Rows few = made(small(2)), many = made(small(30));
  for (size_t i = 0; i < few.size(); ++i) {
    EXPECT_EQ(few[i].first, many[i].first);
    EXPECT_EQ(few[i].second.first, many[i].second.first);
  }
}

TEST(ListopsExamples, ReportHowFarTheyAre) {
  double last = 0;
  make_listops_examples(small(3), [&](const std::string&, const Example&, double done) {
    EXPECT_GT(done, last);
    last = done;
  });
  EXPECT_EQ(last, 1);
}

TEST(ListopsExamples, AreReadFromTheArenasFolder) {
  const TempFolder folder;
  put(folder / "basic_train.tsv", "Source\tTarget\r\n( ( [MAX 1 ) ] )\t1\r\n");
  put(folder / "basic_val.tsv", "Source\tTarget\r\n5\t5\r\n");
  const Rows rows = read(folder.path());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].first, "train");
  EXPECT_EQ(rows[0].second.first, (std::vector<int32_t>{12, 2, 15}));
  EXPECT_EQ(rows[1].first, "valid");
  EXPECT_EQ(rows[1].second.label, 5);
}

TEST(ListopsExamples, AreDealtToSplitsFromOneFile) {
  const TempFolder folder;
  std::string table;
  for (int i = 0; i < 20; ++i) table += "3\t3\n";
  put(folder / "rows.tsv", table);
  std::map<std::string, int> counts;
  for (const auto& [split, example] : read(folder / "rows.tsv")) ++counts[split];
  EXPECT_EQ(counts,
            (std::map<std::string, int>{{"train", 16}, {"valid", 2}, {"test", 2}}));
}

TEST(ListopsExamples, NameWhatIsWrongWithTheFiles) {
  const TempFolder folder;
  EXPECT_THAT(data_error([&] { read(folder.path()); }),
              HasSubstr("expected basic_train.tsv, basic_val.tsv"));
  EXPECT_THAT(data_error([&] { read(folder / "no.tsv"); }), HasSubstr("no.tsv"));
  put(folder / "head.tsv", "Source\tTarget\r\n");
  EXPECT_THAT(data_error([&] { read(folder / "head.tsv"); }),
              HasSubstr("head.tsv: expected rows of ListOps, got none"));
  put(folder / "word.tsv", "3\t3\n1\t[MUX 1 ]\n");
  EXPECT_THAT(data_error([&] { read(folder / "word.tsv"); }),
              HasSubstr("word.tsv: expected ListOps in row 1"));
  put(folder / "empty.tsv", "");
  EXPECT_THAT(data_error([&] { read(folder / "empty.tsv"); }), HasSubstr("empty.tsv"));
}

}  // namespace
}  // namespace lagwise::data
