#include "lagwise/data/sets/split_dealer.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace lagwise::data {
namespace {

std::map<std::string, int> dealt(double valid, double test, int many) {
  SplitDealer dealer(valid, test);
  std::map<std::string, int> counts;
  for (int i = 0; i < many; ++i) ++counts[dealer.next()];
  return counts;
}

TEST(SplitDealer, KeepsTheFractions) {
  EXPECT_EQ(dealt(0.1, 0.1, 1000), (std::map<std::string, int>{
                                       {"train", 800}, {"valid", 100}, {"test", 100}}));
  EXPECT_EQ(dealt(0.25, 0, 8),
            (std::map<std::string, int>{{"train", 6}, {"valid", 2}}));
  EXPECT_EQ(dealt(0, 0, 5), (std::map<std::string, int>{{"train", 5}}));
}

TEST(SplitDealer, TakesOneOfEveryTenAndNotAlwaysTheSame) {
  SplitDealer dealer(0.1, 0);
  std::set<int> places;
  for (int ten = 0; ten < 200; ++ten) {
    int taken = 0;
    for (int i = 0; i < 10; ++i)
      if (dealer.next() == "valid") ++taken, places.insert(i);
    EXPECT_EQ(taken, 1);
  }
  EXPECT_EQ(places.size(), 10u);
}

TEST(SplitDealer, FractionsHoldWhateverRoundingDoes) {
  for (const double fraction : {0.05, 0.07, 0.3, 1.0 / 3, 0.49, 0.7, 0.9}) {
    SCOPED_TRACE(fraction);
    SplitDealer dealer(fraction, 0);
    for (int i = 1, valid = 0; i <= 3000; ++i) {
      valid += dealer.next() == "valid";
      EXPECT_NEAR(valid, fraction * i, 1 + 1e-9);
    }
  }
}

// Rows whose labels take turns: each label is judged.
TEST(SplitDealer, LabelsThatTakeTurnsAreInEverySplit) {
  SplitDealer dealer(0.1, 0.1);
  std::map<std::string, std::set<int>> labels;
  for (int i = 0; i < 1000; ++i) labels[dealer.next()].insert(i % 5);
  for (const auto& [split, seen] : labels) EXPECT_EQ(seen.size(), 5u) << split;
  EXPECT_EQ(labels.size(), 3u);
}

}  // namespace
}  // namespace lagwise::data
