#include "lagwise/core/machine.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>

namespace lagwise {
namespace {

TEST(Machine, HasACore) { EXPECT_GE(usable_cores(), 1); }

/// In a process of its own: it holds for good.
TEST(MachineDeathTest, KeepsFreedMemoryInTheHeap) {
  const auto large_block_is_mapped = [] {
    void* const block = std::malloc(64 << 20);
    const bool mapped = mallinfo2().hblks > 0;
    std::free(block);
    return mapped;
  };
  EXPECT_EXIT(keep_freed_memory(); std::exit(large_block_is_mapped() ? 1 : 0),
                                   ::testing::ExitedWithCode(0), "");
}

TEST(HumanBytes, AreOfTheLargestUnitThatIsNotLarger) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1 kB");
  EXPECT_EQ(human_bytes(1'500'000), "1.5 MB");
  EXPECT_EQ(human_bytes(2'340'000'000), "2.34 GB");
}

}  // namespace
}  // namespace lagwise
