#include "lagwise/data/sources/retrieval_examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

struct RetrievalExamples : ::testing::Test {
  const TempFolder folder;
  std::map<std::string, std::vector<Example>> seen;

  VisitExample note() {
    return [this](const std::string& split, const Example& example, double) {
      seen[split].push_back(example);
    };
  }
  /// Articles of one letter each, from `first` on.
  std::string wiki(char first, int many, size_t size) const {
    std::string text;
    for (int i = 0; i < many; ++i)
      text += " \n = " + std::string(4, static_cast<char>(first + i)) + " = \n \n" +
              std::string(size, static_cast<char>(first + i)) + "\n";
    return text;
  }
};

std::string text_of(const std::vector<int32_t>& ids) {
  return {ids.begin(), ids.end()};
}

TEST_F(RetrievalExamples, AreReadFromTheArenasTables) {
  put(folder / "new_aan_pairs.train.tsv", "1.0\ta\tb\tone\ttwo\n0.0\ta\tb\tx\ty\n");
  put(folder / "new_aan_pairs.eval.tsv", "1\ta\tb\tthree\tfour\n");
  ASSERT_TRUE(is_retrieval_table(folder.path()));
  read_retrieval_examples(folder.path(), note());
  ASSERT_EQ(seen["train"].size(), 2u);
  EXPECT_EQ(text_of(seen["train"][0].first), "one");
  EXPECT_EQ(text_of(seen["train"][0].second), "two");
  EXPECT_EQ(seen["train"][0].label, 1);
  EXPECT_EQ(seen["train"][1].label, 0);
  ASSERT_EQ(seen["valid"].size(), 1u);
  EXPECT_FALSE(seen.contains("test"));
}

TEST_F(RetrievalExamples, NameDamagedTables) {
  put(folder / "a.tsv", "1\ta\tb\tone\n");
  EXPECT_THAT(data_error([&] { read_retrieval_examples(folder / "a.tsv", note()); }),
              HasSubstr("a.tsv, byte 0: expected five columns"));
  put(folder / "a.tsv", "");
  EXPECT_THAT(data_error([&] { read_retrieval_examples(folder / "a.tsv", note()); }),
              HasSubstr("a.tsv: expected pairs of texts, got none"));
  EXPECT_THAT(data_error([&] { read_retrieval_examples(folder.path(), note()); }),
              HasSubstr("expected a table whose name ends in train.tsv"));
}

TEST_F(RetrievalExamples, AreMadeOfPassagesFromOneArticleOrTwo) {
  put(folder / "wiki.train.tokens", wiki('a', 6, 500));
  put(folder / "wiki.valid.tokens", wiki('n', 3, 500));
  EXPECT_FALSE(is_retrieval_table(folder.path()));
  make_passage_examples({folder.path(), 400, 50, 50, 100, 1}, note());
  ASSERT_EQ(seen["train"].size(), 400u);
  ASSERT_EQ(seen["valid"].size(), 50u);
  EXPECT_FALSE(seen.contains("test"));  // the corpus has none
  int same = 0;
  for (const auto& [split, pairs] : seen)
    for (const Example& pair : pairs) {
      ASSERT_EQ(pair.first.size(), 100u);
      ASSERT_EQ(pair.second.size(), 100u);
      const bool one = pair.first[50] == pair.second[50];
      EXPECT_EQ(one, pair.label == 1);
      EXPECT_EQ(pair.first[50] >= 'n', split == "valid");
      same += pair.label;
    }
  EXPECT_NEAR(same, 225, 5 * std::sqrt(450 * 0.25));
}

TEST_F(RetrievalExamples, TakePassagesThatDoNotOverlap) {
  std::string counted;
  for (int i = 0; i < 60; ++i) counted += static_cast<char>('0' + i);
  put(folder / "t/a.txt", counted);
  put(folder / "t/b.txt", std::string(60, '~'));
  make_passage_examples({folder / "t", 300, 0, 0, 25, 1}, note());
  std::set<int> starts;
  for (const Example& pair : seen["train"]) {
    if (pair.label == 0 || pair.first[0] == '~') continue;
    EXPECT_GE(std::abs(pair.first[0] - pair.second[0]), 25);
    starts.insert({pair.first[0], pair.second[0]});
  }
  EXPECT_EQ(*starts.begin(), '0');
  EXPECT_EQ(*starts.rbegin(), '0' + 35);
}

TEST_F(RetrievalExamples, AreTheSameForTheSameSeed) {
  put(folder / "wiki.train.tokens", wiki('a', 6, 500));
  make_passage_examples({folder.path(), 20, 0, 0, 100, 1}, note());
  const auto first = seen["train"];
  seen.clear();
  make_passage_examples({folder.path(), 30, 0, 0, 100, 1}, note());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].first, seen["train"][i].first);
    EXPECT_EQ(first[i].label, seen["train"][i].label);
  }
}

TEST_F(RetrievalExamples, NeedTwoArticles) {
  put(folder / "wiki.train.tokens", wiki('a', 6, 100));
  EXPECT_THAT(
      data_error([&] {
        make_passage_examples({folder.path(), 9, 0, 0, 100, 1}, note());
      }),
      HasSubstr(
          "expected two articles of 200 bytes or more in the split train, got 0"));
}

}  // namespace
}  // namespace lagwise::data
