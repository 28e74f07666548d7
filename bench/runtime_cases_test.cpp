#include "bench/runtime_cases.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace lagwise::bench {
namespace {

TEST(RuntimeCases, TimeEveryTypeOfWeightsAndBatchBesideTorch) {
  RuntimePlan plan;
  plan.quick = true, plan.threads = 1;
  std::set<std::tuple<std::string, int64_t, int64_t>> seen;
  run_runtime_cases(plan, [&](const RuntimeRow& row) {
    seen.insert({row.weights, row.dim, row.batch});
    EXPECT_GT(row.ours_ms, 0);
    EXPECT_NEAR(row.ratio, row.baseline_ms / row.ours_ms, 1e-9);
    EXPECT_GT(row.fraction, 0);
    EXPECT_GT(row.read_gbps, 0);
  });
  EXPECT_EQ(seen.size(), 12U);
}

}  // namespace
}  // namespace lagwise::bench
