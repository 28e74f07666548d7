// `lagwise train` and `lagwise eval` on the tasks that have something to remember, and
// of a run that was trained with a past.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/testing_files.h"
#include "lagwise/study/run_summary.h"

namespace lagwise::cli {
namespace {

using lagwise::testing::contents;
using lagwise::testing::put;
using lagwise::testing::TempFolder;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

Outcome act(std::vector<std::string> words) {
  return run_captured({verb("train"), verb("eval")}, std::move(words));
}

/// The folder of a run of a few steps on that task.
std::string trained_on(const TempFolder& folder, const std::string& task,
                       const std::string& past = "0") {
  const std::string recipe = folder / "memory.toml";
  put(recipe,
      "[model]\nlayers = 1\ndim = 16\nheads = 2\n"
      "encoding = \"rope:layout=half,decay=alibi\"\n[data]\ntask = \"" +
          task + "\"\nlength = 16\n[train]\nsteps = 6\nbatch = 4\nwarmup = 1\n" +
          "log_every = 3\nthreads = 1\npast = \"" + past + "\"\n");
  const Outcome trained = act({"train", recipe, "--out", folder / "run"});
  EXPECT_EQ(trained.code, 0) << trained.err;
  return folder / "run";
}

TEST(EvalMemory, PrintsWhatTheBestPredictorKnows) {
  const TempFolder folder;
  const std::string run = trained_on(folder, "markov:symbols=4");
  const Outcome outcome = act({"eval", run, "--windows", "4"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("model     Bayes    source  model excess"));
  const json position = json::parse(contents(run + "/eval/position-test.json"));
  EXPECT_EQ(position["slide"], 2);
  for (const json& span : position["spans"]) {
    EXPECT_GT(span["best"].get<double>(), span["source"].get<double>());
    EXPECT_GT(span["loss"].get<double>(), span["best"].get<double>());
  }
}

TEST(EvalMemory, PrintsTheLossAgainstTheContext) {
  const TempFolder folder;
  const std::string run = trained_on(folder, "markov:symbols=4");
  const Outcome outcome = act({"eval", run, "--windows", "4"});
  EXPECT_THAT(outcome.out, HasSubstr("the last 16 targets of each window"));
  for (const char* context : {"0.25x (4)", "0.5x (8)", "1x (16)", "8x (128)"})
    EXPECT_THAT(outcome.out, HasSubstr(context));
  const json position = json::parse(contents(run + "/eval/position-test.json"));
  EXPECT_EQ(position["context_targets"], 16);
  ASSERT_EQ(position["contexts"].size(), 6U);
  EXPECT_EQ(position["contexts"][2]["difference"], 0);
  EXPECT_EQ(position["contexts"][5]["context"], 128);
}

TEST(EvalMemory, JudgesRecallAtEachLength) {
  const TempFolder folder;
  const std::string run = trained_on(folder, "recall:pairs=2,symbols=4,examples=20");
  const Outcome outcome = act({"eval", run, "--lengths", "0.25x,1x,2x,8x"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("no examples of 4 tokens: recall: expected"));
  EXPECT_THAT(outcome.out, HasSubstr("accuracy by length, trained at 16"));
  EXPECT_THAT(outcome.out, HasSubstr("(20 examples of 128 tokens, 40 targets)"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("loss by position")));
  const json found = json::parse(contents(run + "/eval/lengths-test.json"));
  ASSERT_EQ(found["lengths"].size(), 3U);
  EXPECT_EQ(found["lengths"][0]["value"],
            json::parse(contents(run + "/eval/metric-test.json"))["value"]);
  const RunSummary summary = read_run_summary(run);
  ASSERT_EQ(summary.lengths.size(), 3U);
  EXPECT_EQ(summary.lengths[2].tokens, 128);
  EXPECT_EQ(summary.lengths[2].value, found["lengths"][2]["value"].get<double>());
}

TEST(EvalMemory, CountsTokensReadApartAndAsksForATwin) {
  const TempFolder folder;
  const std::string run = trained_on(folder, "markov:symbols=4", "2");
  std::istringstream lines(contents(run + "/metrics.jsonl"));
  std::string first;
  std::getline(lines, first);
  EXPECT_EQ(json::parse(first)["tokens"], 3 * 4 * 16);
  EXPECT_EQ(json::parse(first)["tokens_read"], 3 * 4 * 32);
  EXPECT_THAT(act({"eval", run, "--windows", "2"}).out,
              HasSubstr("against the lower of this line and that of a twin"));
}

TEST(EvalMemory, RefusesAPastThatATaskHasNot) {
  const TempFolder folder;
  const std::string recipe = folder / "recall.toml";
  put(recipe, "[data]\ntask = \"recall\"\nlength = 64\n");
  const Outcome outcome =
      act({"train", recipe, "--set", "train.past=1", "--out", folder / "run"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("train.past: this task is no stream of tokens"));
}

}  // namespace
}  // namespace lagwise::cli
