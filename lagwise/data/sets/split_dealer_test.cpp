#include "lagwise/data/sets/split_dealer.h"

#include <gtest/gtest.h>

#include <map>

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

TEST(SplitDealer, TakesTheTenthOfEveryTen) {
  SplitDealer dealer(0.1, 0);
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(dealer.next(), i % 10 == 9 ? "valid" : "train");
}

}  // namespace
}  // namespace lagwise::data
