#include "lagwise/tasks/leaf_stretches.h"

#include <gtest/gtest.h>

#include <set>

#include "lagwise/tasks/draws.h"

namespace lagwise {
namespace {

std::set<int64_t> starts(const std::vector<int64_t>& ends, const Rows& rows,
                         int64_t length) {
  const LeafStretches stretches(ends, rows, length);
  std::set<int64_t> found;
  for (int64_t row = 0; row < 2000; ++row) {
    data::Dice dice = row_dice(1, 0, 0, row);
    found.insert(stretches.start(dice));
  }
  return found;
}

std::set<int64_t> range(int64_t begin, int64_t end) {
  std::set<int64_t> all;
  for (int64_t i = begin; i < end; ++i) all.insert(i);
  return all;
}

TEST(LeafStretches, OneShardIsDrawnFromAsEver) {
  EXPECT_EQ(starts({50}, Rows(0, 1), 8), range(0, 42));
  EXPECT_EQ(starts({50}, Rows(0, 1, 3, 4), 8), range(0, 42));
  const LeafStretches stretches({50}, Rows(0, 1), 8);
  data::Dice ours = row_dice(1, 2, 3, 4), theirs = row_dice(1, 2, 3, 4);
  EXPECT_EQ(stretches.start(ours), pick(theirs, 42));
}

TEST(LeafStretches, LeavesShareOutTheShards) {
  const std::vector<int64_t> ends = {20, 40, 60, 80};
  EXPECT_EQ(starts(ends, Rows(0, 1, 1, 4), 5), range(20, 35));
  std::set<int64_t> expected = range(0, 15);
  expected.merge(range(40, 55));
  EXPECT_EQ(starts(ends, Rows(0, 1, 0, 2), 5), expected);
  EXPECT_EQ(starts(ends, Rows(0, 1, 5, 8), 5), range(20, 35));  // 5 mod 4
}

TEST(LeafStretches, ALeafOfShortPartsTakesThoseOfAll) {
  EXPECT_EQ(starts({3, 6, 40}, Rows(0, 1, 0, 4), 8), range(6, 32));
  EXPECT_EQ(starts({3, 6, 12}, Rows(0, 1, 0, 4), 8), range(0, 4));
}

TEST(LeafStretches, CropsStayWithinTheirPart) {
  std::set<int64_t> expected = range(0, 2);
  expected.merge(range(14, 18));
  EXPECT_EQ(starts({10, 14, 26}, Rows(0, 1), 8), expected);
}

}  // namespace
}  // namespace lagwise
