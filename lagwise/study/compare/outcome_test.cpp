// What runs cost and what came of them: lagwise compare RUN... --outcome.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/study/compare/table.h"
#include "lagwise/study/testing_runs.h"

namespace lagwise {
namespace {

using lagwise::testing::put;
using lagwise::testing::put_run;
using lagwise::testing::recipe_of;
using lagwise::testing::TempFolder;
using ::testing::HasSubstr;
using ::testing::Not;

struct OutcomeTable : ::testing::Test {
  const TempFolder folder;

  Recipe titled(const std::string& title, uint64_t seed = 1) const {
    Recipe recipe = recipe_of("none", seed);
    recipe.title = title;
    return recipe;
  }
  CompareTable table(const std::vector<std::string>& names) const {
    std::vector<RunSummary> runs;
    for (const std::string& name : names) {
      runs.push_back(read_run_summary(folder / name));
      runs.back().folder = name;
    }
    return {rows_of(runs), {}};
  }
};

TEST_F(OutcomeTable, HasALineForEachRecipe) {
  put_run(folder / "a", titled("songs"), true, 2.34567);
  put_run(folder / "b", titled("digits"), true, 0);
  put(folder / "b/eval/metric-test.json",
      R"({"metric": "accuracy", "value": 0.9953, "guess": 0.1135})");
  EXPECT_EQ(
      outcome_markdown(table({"a", "b"})),
      "| run | recipe | parameters | steps | minutes | memory | metric | value | "
      "blind guess |\n"
      "|---|---|---|---|---|---|---|---|---|\n"
      "| a | songs | 1234 | 10 | 0.1 | 5.0 MB | bits per byte (test) | 2.346 | - "
      "|\n"
      "| b | digits | 1234 | 10 | 0.1 | 5.0 MB | accuracy (test) | 0.9953 | 0.1135 "
      "|\n");
  EXPECT_THAT(outcome_text(table({"a", "b"})),
              HasSubstr("b    digits  1234        10     0.1      5.0 MB  accuracy"));
}

TEST_F(OutcomeTable, SaysWhatIsNotDone) {
  put_run(folder / "a", titled("songs"), false, 0);
  const std::string text = outcome_text(table({"a"}));
  EXPECT_THAT(text, HasSubstr("stopped at step 5 of 10"));
  EXPECT_THAT(text, Not(HasSubstr("1234")));
}

TEST_F(OutcomeTable, JoinsSeeds) {
  put_run(folder / "a", titled("songs", 1), true, 2.0);
  put_run(folder / "b", titled("songs", 2), true, 3.0);
  const std::string text = outcome_text(table({"a", "b"}));
  EXPECT_THAT(text, HasSubstr("a, b"));
  EXPECT_THAT(text, HasSubstr("2.5 ± 0.71"));
}

}  // namespace
}  // namespace lagwise
