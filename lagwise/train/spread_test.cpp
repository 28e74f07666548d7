#include "lagwise/train/spread.h"

#include <gtest/gtest.h>

#include <string>

namespace lagwise {
namespace {

/// "0-4 8-10" for the stretches of a split.
std::string stretches(int64_t size, int64_t examples, int64_t batch) {
  std::string said;
  for (const Stretch& one : spread(size, examples, batch))
    said += (said.empty() ? "" : " ") + std::to_string(one.begin) + "-" +
            std::to_string(one.end);
  return said;
}

TEST(Spread, TakesAllInOrder) {
  EXPECT_EQ(stretches(10, 0, 4), "0-4 4-8 8-10");
  EXPECT_EQ(stretches(10, 99, 4), "0-4 4-8 8-10");
  EXPECT_EQ(stretches(0, 0, 4), "");
}

TEST(Spread, ReachesFromTheBeginningToTheEnd) {
  EXPECT_EQ(stretches(100, 6, 2), "0-2 49-51 98-100");
  EXPECT_EQ(stretches(100, 3, 4), "0-3");
}

}  // namespace
}  // namespace lagwise
