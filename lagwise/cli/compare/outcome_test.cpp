// `lagwise compare RUN... --outcome`; its table is tested in study/compare.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/study/testing_runs.h"

namespace lagwise::cli {
namespace {

using lagwise::testing::put_run;
using lagwise::testing::recipe_of;
using lagwise::testing::TempFolder;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CompareOutcome, IsATableOfWhatRunsCost) {
  const TempFolder folder;
  put_run(folder / "a", recipe_of("none", 1), true, 2.5);
  put_run(folder / "b", recipe_of("rope", 1), false, 0);
  const Outcome text = compare({folder / "a", folder / "b", "--outcome"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("minutes  memory  metric"));
  EXPECT_THAT(text.out, HasSubstr("/b is not judged: lagwise eval"));
  EXPECT_THAT(text.out, Not(HasSubstr("restart")));  // what the other table has
  const Outcome markdown = compare({folder / "a", "--outcome", "--markdown"});
  EXPECT_THAT(markdown.out, HasSubstr("| bits per byte (test) | 2.5 | - |"));
  expect_failure(compare({"--recipe", "x.toml", "--out", folder / "o", "--outcome"}), 2,
                 "--outcome: expected folders of runs, got --recipe");
}

}  // namespace
}  // namespace lagwise::cli
