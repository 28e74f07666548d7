#include "bench/dist_cases.h"

#include <gtest/gtest.h>

namespace lagwise::bench {
namespace {

/// States go from rank to rank, not rows.
TEST(SequenceTraffic, DoesNotDependOnTheLength) {
  const int64_t few = sequence_traffic(64, 2).bytes_per_step;
  EXPECT_GT(few, 0);
  EXPECT_EQ(sequence_traffic(1000, 2).bytes_per_step, few);
}

}  // namespace
}  // namespace lagwise::bench
