#include "bench/generate_cases.h"

#include <gtest/gtest.h>

#include <set>

namespace lagwise::bench {
namespace {

GeneratePlan quick_plan(const std::string& only = "") {
  GeneratePlan plan;
  plan.quick = true, plan.threads = 1, plan.only = only;
  return plan;
}

TEST(GenerateCases, TimeEveryWayToWriteOnAtEveryContext) {
  GeneratePlan plan = quick_plan();
  int handed_on = 0;
  plan.on_row = [&](const BenchRow&) { ++handed_on; };
  const std::vector<BenchRow> rows = run_generate_cases(plan);
  std::set<std::string> baselines;
  std::set<int64_t> contexts;
  for (const BenchRow& row : rows) {
    if (row.name != "constant") baselines.insert(row.baseline), contexts.insert(row.n);
    EXPECT_GT(row.ours_ms, 0);
    EXPECT_GT(row.baseline_ms, 0);
    EXPECT_EQ(row.direction, "step");
    EXPECT_EQ(row.note, "");
  }
  EXPECT_EQ(baselines,
            (std::set<std::string>{"linear rope", "linear conv_spe", "exact rope",
                                   "exact huang", "recompute"}));
  EXPECT_EQ(contexts, (std::set<int64_t>{64, 256}));
  EXPECT_EQ(rows.size(), baselines.size() * contexts.size() + 1);
  EXPECT_EQ(size_t(handed_on), rows.size());
}

TEST(GenerateCases, CompareOursLateInATextWithItselfEarly) {
  const std::vector<BenchRow> rows = run_generate_cases(quick_plan("constant"));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].n, 200);
  EXPECT_EQ(rows[0].baseline, "at 10");
}

TEST(GenerateCases, SayWhichContextsAreEstimated) {
  GeneratePlan plan = quick_plan("recompute");
  plan.most_bytes = 5 * 64 * 64 * 64 * 4;  // codes of 64 tokens
  const std::vector<BenchRow> rows = run_generate_cases(plan);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].note, "");
  EXPECT_NE(rows[1].note.find("estimated: as many times as long as a context of 64"),
            std::string::npos)
      << rows[1].note;
  EXPECT_GT(rows[1].baseline_ms, 0);
}

TEST(GenerateCases, MeasureOneGroupAlone) {
  for (const BenchRow& row : run_generate_cases(quick_plan("exact")))
    EXPECT_EQ(row.name, "exact");
}

}  // namespace
}  // namespace lagwise::bench
