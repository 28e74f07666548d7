#include "lagwise/data/sets/left_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;

TEST(LeftOut, HasALineForEachReason) {
  EXPECT_THAT(
      left_out_lines({{"odd files", {"c", "b"}}, {"none", {}}, {"others", {"a"}}}),
      ElementsAre("left out: 2, odd files, such as b",
                  "left out: 1, others, such as a"));
}

}  // namespace
}  // namespace lagwise::data
