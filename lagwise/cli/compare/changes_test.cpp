// `lagwise compare` in a folder that holds runs already: it never takes a run of
// another recipe for one of this. No test here trains: --minutes is 0 throughout.

#include "lagwise/study/compare/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/study/testing_runs.h"

namespace lagwise::cli {
namespace {

using lagwise::testing::Corpus;
using lagwise::testing::put;
using lagwise::testing::put_run;
using ::testing::HasSubstr;
using ::testing::Not;

/// A comparison of one cell, which is trained and judged.
class Compared : public ::testing::Test {
 protected:
  Compared() { put_cell({}); }

  GridCell cell(const std::vector<std::string>& set) const {
    CompareRequest request = corpus.request("none");
    request.set = set;
    return plan_cells(request).at(0);
  }

  void put_cell(const std::vector<std::string>& set) const {
    CompareRequest request = corpus.request("none");
    request.set = set;
    const GridCell planned = cell(set);
    put_run(folder(), planned.recipe_for(request, 0), true, 2.5, planned.data_hash);
    put_marker("  \"slide\": \"1/8\",\n");
  }

  /// What was asked of the evaluation; `slide` is not there in older versions.
  void put_marker(const std::string& slide) const {
    put(folder() + "/eval/compare.json",
        "{\n  \"lengths\": \"1x,2x,4x\",\n  \"windows\": 64,\n" + slide +
            "  \"examples\": 0,\n  \"decoded\": 256\n}\n");
  }

  std::string folder() const {
    return corpus / "out/small~none~linear+map=elu1/seed-0";
  }

  Outcome compare(const std::vector<std::string>& set,
                  const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"compare",      "--recipe",  corpus.recipe(),
                                      "--encodings",  "none",      "--out",
                                      corpus / "out", "--minutes", "0"};
    for (const std::string& word : set) words.insert(words.end(), {"--set", word});
    words.insert(words.end(), more.begin(), more.end());
    return run_captured({verb("compare")}, words);
  }

  void expect_refused(const std::vector<std::string>& set,
                      const std::string& change) const {
    const Outcome outcome = compare(set);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("small~none~linear+map=elu1/seed-0 ("));
    EXPECT_THAT(outcome.err, HasSubstr(change));
    EXPECT_THAT(outcome.err, HasSubstr("--retrain trains them anew"));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
    EXPECT_EQ(outcome.out, "");
  }

  const Corpus corpus;
};

TEST_F(Compared, IsTakenAsItIsForTheSameRecipe) {
  const Outcome outcome = compare({});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2.500"));
  EXPECT_THAT(outcome.out, HasSubstr("1 of 1 runs are done"));
}

TEST_F(Compared, IsJudgedAgainWhereItsRestartLineIsOfAnOlderVersion) {
  put_marker("");
  EXPECT_THAT(compare({}).out, HasSubstr("0 of 1 runs are done"));
}

TEST_F(Compared, IsRefusedByKeyForAnother) {
  expect_refused({"train.steps=100"}, "(train.steps = 100, was 10)");
  expect_refused({"train.steps=3"}, "(train.steps = 3, was 10)");
  expect_refused({"model.layers=2"}, "(model.layers = 2, was 1)");
  expect_refused({"train.seed=8"}, "(train.seed = 8, was 7)");
  expect_refused({"train.lr=0.5"}, "(train.lr = 0.5, was 0.003)");
  expect_refused({"train.lr=0.5", "model.layers=2"},
                 "(model.layers = 2, was 1; train.lr = 0.5, was 0.003)");
}

TEST_F(Compared, IsRefusedForAnotherRecipeOfTheSameName) {
  std::string text = recipe_text(read_recipe(corpus.recipe(), {"train.warmup=1"}));
  put(corpus.recipe(), text);
  expect_refused({}, "(train.warmup = 1, was 100)");
}

TEST_F(Compared, IsRefusedForOtherDataButNotForMovedData) {
  put(corpus / "other/train.txt", std::string(5000, 'x'));
  expect_refused({"data.path=" + corpus / "other"},
                 "data.path = \"" + corpus / "other" + "\" with hash ");
  std::filesystem::copy(corpus / "corpus", corpus / "moved");
  const Outcome moved = compare({"data.path=" + corpus / "moved"});
  EXPECT_EQ(moved.code, 0) << moved.err;
  EXPECT_THAT(moved.out, HasSubstr("1 of 1 runs are done"));
}

TEST_F(Compared, KeepsItsThreadsWhateverTheJobs) {
  put_cell({"train.threads=1"});
  EXPECT_EQ(compare({}).code, 0);
  EXPECT_EQ(compare({}, {"--jobs", "2"}).code, 0);
}

TEST_F(Compared, MayGoOnWhereItsScheduleAllowsMoreSteps) {
  put_cell({"train.schedule=constant"});
  const Outcome more = compare({"train.schedule=constant", "train.steps=20"});
  ASSERT_EQ(more.code, 0) << more.err;
  EXPECT_THAT(more.out, HasSubstr("one stopped at step 10 of 20"));
  EXPECT_THAT(more.out, Not(HasSubstr("2.500")));
  expect_refused({"train.schedule=constant", "train.steps=5"},
                 "(train.steps = 5, was 10)");
}

TEST_F(Compared, ShowsNoFiguresOfARunThatIsToBeTrainedAnew) {
  const Outcome outcome = compare({"train.steps=100"}, {"--retrain"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("not started: 0 of 1 seed"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("2.500")));
  EXPECT_TRUE(std::filesystem::exists(folder() + "/eval/metric-test.json"));
  EXPECT_THAT(compare({}).out, HasSubstr("2.500"));
}

TEST_F(Compared, DivergesWithExitCode4UntilTheRecipeIsAnother) {
  put(corpus / "out/compare.json",
      R"({"spent_seconds": 1, "failures": {"small~none~linear+map=elu1/seed-0":
          {"code": 4, "message": "the loss is not finite at step 3"}}})");
  std::filesystem::remove(folder() + "/eval/compare.json");
  const Outcome outcome = compare({});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.out, HasSubstr("diverged, seed 0: the loss is not finite"));
  EXPECT_THAT(outcome.err, HasSubstr("no run is done, 1 diverged; small~none~"));
  EXPECT_THAT(outcome.err, HasSubstr("--retrain trains them anew"));
  expect_refused({"train.lr=0.5"}, "(train.lr = 0.5, was 0.003)");
  const Outcome anew = compare({"train.lr=0.5"}, {"--retrain"});
  EXPECT_EQ(anew.code, 0) << anew.err;
  EXPECT_THAT(anew.out, HasSubstr("not started: 0 of 1 seed"));
}

}  // namespace
}  // namespace lagwise::cli
