#include "bench/generate_cases.h"

#include <gtest/gtest.h>

#include <set>

namespace lagwise::bench {
namespace {

TEST(GenerateCases, TimeEveryWayToWriteOnAtEveryContext) {
  GeneratePlan plan;
  plan.quick = true, plan.threads = 1;
  const std::vector<BenchRow> rows = run_generate_cases(plan);
  std::set<std::string> baselines;
  std::set<int64_t> contexts;
  for (const BenchRow& row : rows) {
    baselines.insert(row.baseline), contexts.insert(row.n);
    EXPECT_GT(row.ours_ms, 0);
    EXPECT_GT(row.baseline_ms, 0);
    EXPECT_EQ(row.direction, "step");
  }
  EXPECT_EQ(baselines, (std::set<std::string>{"linear rope", "exact rope",
                                              "exact huang", "recompute"}));
  EXPECT_EQ(rows.size(), baselines.size() * contexts.size());
}

}  // namespace
}  // namespace lagwise::bench
