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

/// 10 million parameters on 8 nodes: 3 rounds of 40 MB, 0.96 s at 1 Gbit/s.
TEST(Scaled, IsTheArithmeticOfThePage) {
  const Scaled slow = scaled(0.96, 10'000'000, 8, 1e9, 1e12);
  EXPECT_EQ(slow.bytes_per_step, 120'000'000);
  EXPECT_NEAR(slow.exchange, 0.96, 1e-12);
  EXPECT_NEAR(slow.busy, 0.5, 1e-12);
  const Scaled many = scaled(0.96, 10'000'000, 1024, 1e9, 1e12);
  EXPECT_EQ(many.bytes_per_step, 400'000'000);
  // A line that is faster than we are is no gain.
  EXPECT_EQ(scaled(1, 1000, 8, 1e11, 1e10).busy, scaled(1, 1000, 8, 1e10, 1e10).busy);
  EXPECT_EQ(scaled(1, 1000, 1, 1e9, 1e9).busy, 1.0);
}

}  // namespace
}  // namespace lagwise::bench
