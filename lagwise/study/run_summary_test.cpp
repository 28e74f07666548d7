#include "lagwise/study/run_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "lagwise/core/errors.h"
#include "lagwise/study/testing_runs.h"
#include "lagwise/train/run_folder.h"

namespace lagwise {
namespace {

using lagwise::testing::put;
using lagwise::testing::put_run;
using lagwise::testing::recipe_of;
using lagwise::testing::TempFolder;
using ::testing::ElementsAre;

TEST(RunSummary, ReadsWhatARunLeft) {
  const TempFolder folder;
  put_run(folder / "a", recipe_of("rope", 1), true, 2.5);
  const RunSummary run = read_run_summary(folder / "a");
  EXPECT_TRUE(run.finished());
  EXPECT_EQ(run.step, 10);
  EXPECT_EQ(run.valid_loss, 1.5);
  EXPECT_EQ(run.train_tokens_per_second, 500);
  EXPECT_EQ(run.decode_tokens_per_second, 50);
  EXPECT_EQ(run.parameters, 1234);
  EXPECT_EQ(run.train_seconds, 4);
  EXPECT_EQ(run.value, 2.5);
  EXPECT_TRUE(std::isnan(run.guess));  // of a file that does not say it
  EXPECT_EQ(run.judged_on(), "test");
  ASSERT_EQ(run.lengths.size(), 2u);
  EXPECT_EQ(run.lengths[1].tokens, 64);
  EXPECT_EQ(run.lengths[1].restart, 1.0);
  EXPECT_THROW(read_run_summary(folder / "none"), DataError);
}

TEST(RunSummary, TakesWhatWasFoundOnAllOfTheRunsOwnData) {
  const TempFolder folder;
  const std::string run = folder / "a";
  const auto put_metric = [&](const std::string& name, double value) {
    put(run + "/eval/" + name + ".json",
        nlohmann::json(
            {{"metric", "loss"}, {"value", value}, {"examples", 3}, {"of", 9}})
            .dump());
  };
  put_run(run, recipe_of("rope", 1), false, 0);
  put_metric("metric-test~data=00000000000000ff", 7);
  EXPECT_FALSE(read_run_summary(run).judged());
  put_metric("metric-test~examples=2", 5);
  put_metric("metric-test~examples=3", 6);
  EXPECT_EQ(read_run_summary(run).value, 6);
  EXPECT_EQ(read_run_summary(run).judged_on(), "test, 3 of 9 examples");
  EXPECT_EQ(read_run_summary(run, 2).value, 5);
  put(run + "/eval/metric-test.json",
      R"({"metric": "loss", "value": 4, "examples": 9, "of": 9})");
  EXPECT_EQ(read_run_summary(run).value, 4);
  EXPECT_EQ(read_run_summary(run).judged_on(), "test");
  EXPECT_EQ(read_run_summary(run, 2).value, 5);
  EXPECT_EQ(read_run_summary(run, 20).value, 4);  // more than there are: all
}

TEST(RunSummary, NamesDamagedFilesAndGoesOn) {
  const TempFolder folder;
  put_run(folder / "a", recipe_of("rope", 1), true, 2.5);
  for (const char* name : {"metric-test", "position-test"})
    put(folder / "a/eval" + "/" + name + ".json", "{");
  put(folder / "a/eval/metric-valid.json", R"({"metric": "loss", "value": 4})");
  put(folder / "a/run.json", "[]");
  const RunSummary run = read_run_summary(folder / "a");
  EXPECT_THAT(run.damaged,
              ElementsAre(folder / "a/eval/metric-test.json",
                          folder / "a/eval/position-test.json", folder / "a/run.json"));
  EXPECT_EQ(run.value, 4);
  EXPECT_EQ(run.judged_on(), "valid");
}

TEST(RunSummary, TellsARunThatTrainsFromOneThatDoesNot) {
  const TempFolder folder;
  const std::string run = folder / "a";
  const auto state = [&] { return read_run_summary(run).state_text(); };
  put(run + "/recipe.toml", "[train]\nsteps = 100\n");
  EXPECT_EQ(state(), "not started");
  put(run + "/metrics.jsonl", "{\"step\": 5, \"loss\": 2}\n");
  EXPECT_EQ(state(), "stopped at step 5 of 100");
  {
    const RunFolder trainer(run);
    EXPECT_EQ(state(), "training, step 5 of 100");
  }
  EXPECT_EQ(state(), "stopped at step 5 of 100");
  put(run + "/metrics.jsonl", "{\"step\": 7, \"diverged\": \"the loss\"}\n");
  EXPECT_EQ(state(), "diverged at step 7 of 100");
  put(run + "/metrics.jsonl", "{\"step\": 100, \"done\": true}\n");
  EXPECT_EQ(state(), "done, 100 steps");
}

TEST(RunFolder, IsTakenThoughSomebodyLooksAtItsLock) {
  const TempFolder folder;
  EXPECT_FALSE(is_being_trained(folder / "nowhere"));
  {
    const RunFolder first(folder / "a");
    EXPECT_TRUE(is_being_trained(folder / "a"));
    EXPECT_THROW(RunFolder(folder / "a"), std::runtime_error);
  }
  EXPECT_FALSE(is_being_trained(folder / "a"));
  EXPECT_NO_THROW(RunFolder(folder / "a"));
}

}  // namespace
}  // namespace lagwise
