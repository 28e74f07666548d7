#include "lagwise/tasks/padded.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lagwise {
namespace {

TEST(Padded, FillsShortRowsAndSaysHowLongTheyAre) {
  const std::vector<std::vector<int64_t>> rows = {{1, 2, 3}, {}, {4}};
  EXPECT_TRUE(at::equal(
      padded(rows, -1),
      at::tensor({1, 2, 3, -1, -1, -1, 4, -1, -1}, at::kLong).reshape({3, 3})));
  EXPECT_TRUE(at::equal(lengths_of(rows), at::tensor({3, 0, 1}, at::kLong)));
}

TEST(Padded, SaysNothingOfRowsThatAreEqual) {
  EXPECT_FALSE(lengths_of({{1, 2}, {3, 4}}).defined());
  EXPECT_TRUE(lengths_of({{}, {}}).defined());  // a column of padding
  EXPECT_EQ(padded({{}, {}}, 0).size(1), 1);
}

}  // namespace
}  // namespace lagwise
