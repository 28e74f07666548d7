#include "lagwise/core/machine.h"

#include <gtest/gtest.h>

namespace lagwise {
namespace {

TEST(Machine, HasACore) { EXPECT_GE(usable_cores(), 1); }

TEST(HumanBytes, AreOfTheLargestUnitThatIsNotLarger) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1 kB");
  EXPECT_EQ(human_bytes(1'500'000), "1.5 MB");
  EXPECT_EQ(human_bytes(2'340'000'000), "2.34 GB");
}

}  // namespace
}  // namespace lagwise
