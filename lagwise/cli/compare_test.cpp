// `lagwise compare`: the plan, and the table of runs that are there. That it can be
// killed and goes on is tested with the program itself, in tests/compare_test.py.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/errors.h"
#include "lagwise/study/compare/ledger.h"
#include "lagwise/study/compare/plan.h"
#include "lagwise/study/compare/table.h"
#include "lagwise/study/testing_runs.h"

namespace lagwise::cli {
namespace {

using lagwise::testing::Corpus;
using lagwise::testing::put;
using lagwise::testing::put_lines;
using lagwise::testing::put_run;
using lagwise::testing::recipe_of;
using lagwise::testing::TempFolder;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> names(const std::vector<GridCell>& cells) {
  std::vector<std::string> all;
  for (const GridCell& cell : cells) all.push_back(cell.name);
  return all;
}

template <class Act>
std::string refusal(const Act& act) {
  try {
    act();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(ComparePlan, IsTheGridInOrder) {
  const Corpus corpus;
  EXPECT_THAT(names(plan_cells(corpus.request("none;lrpe:p={identity,odd_even}",
                                              "linear:map=elu1;exact"))),
              ElementsAre("small~none~linear+map=elu1", "small~none~exact",
                          "small~lrpe+p=identity~linear+map=elu1",
                          "small~lrpe+p=identity~exact",
                          "small~lrpe+p=odd_even~linear+map=elu1",
                          "small~lrpe+p=odd_even~exact"));
}

TEST(ComparePlan, TakesTheRecipesOwnWhereNothingIsAskedFor) {
  const Corpus corpus;
  EXPECT_THAT(names(plan_cells(corpus.request(""))),
              ElementsAre("small~none~linear+map=elu1"));
}

TEST(ComparePlan, KeepsWhatAnAttentionCannotServe) {
  const Corpus corpus;
  const auto cells = plan_cells(corpus.request("huang;none", "linear:map=elu1;exact"));
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_THAT(cells[0].not_served, HasSubstr("'huang' cannot be used with causal"));
  for (const size_t i : {1, 2, 3}) EXPECT_EQ(cells[i].not_served, "");
}

TEST(ComparePlan, GroupsLearningRates) {
  const Corpus corpus;
  CompareRequest request = corpus.request("none;sinusoidal");
  request.rates = {"0.001", "0.01"};
  const auto cells = plan_cells(request);
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_EQ(cells[1].name, "small~none~linear+map=elu1~lr=0.01");
  EXPECT_EQ(cells[0].group, cells[1].group);
  EXPECT_NE(cells[1].group, cells[2].group);
}

TEST(ComparePlan, PutsThePastOnAnAxis) {
  const Corpus corpus;
  CompareRequest request = corpus.request("none;t5");
  request.pasts = "0;0,0,1,3";
  const auto cells = plan_cells(request);
  EXPECT_THAT(names(cells), ElementsAre("small~none~linear+map=elu1~past=0",
                                        "small~none~linear+map=elu1~past=0,0,1,3",
                                        "small~t5~linear+map=elu1~past=0",
                                        "small~t5~linear+map=elu1~past=0,0,1,3"));
  EXPECT_EQ(cells[1].recipe_for(request, 0).train.past, "0,0,1,3");
  EXPECT_NE(cells[0].group, cells[1].group);
  for (const size_t i : {0, 1, 2}) EXPECT_EQ(cells[i].not_served, "");
  EXPECT_THAT(cells[3].not_served, HasSubstr("whose state grows with the past"));
  request.pasts = "0;one";
  EXPECT_THAT(refusal([&] { plan_cells(request); }), HasSubstr("got 'one'"));
}

TEST(ComparePlan, TrainsSeedsFromTheRecipesOn) {
  const Corpus corpus;
  CompareRequest request = corpus.request("none");
  request.set = {"train.steps=3"};
  const auto cells = plan_cells(request);
  EXPECT_THAT(cells[0].train_words(request, 2, 1),
              ElementsAre("train", corpus.recipe(), "--out",
                          request.out + "/small~none~linear+map=elu1/seed-2", "--set",
                          "train.steps=3", "--set", "model.encoding=none", "--set",
                          "model.attention=linear:map=elu1", "--set", "train.seed=9",
                          "--set", "train.threads=1"));
}

TEST(ComparePlan, RefusesWhatNobodyKnows) {
  const Corpus corpus;
  const auto said = [&](const CompareRequest& request) {
    return refusal([&] { plan_cells(request); });
  };
  EXPECT_THAT(said(corpus.request("rop")), HasSubstr("unknown encoding 'rop'"));
  EXPECT_THAT(said(corpus.request("none;;rope")), HasSubstr("--encodings: expected"));
  EXPECT_THAT(said(corpus.request("none", "liner")), HasSubstr("attention 'liner'"));
  CompareRequest request = corpus.request("none");
  request.rates = {"fast"};
  EXPECT_THAT(said(request), HasSubstr("train.lr"));
  request = corpus.request("none");
  request.recipes.push_back(corpus.recipe());
  EXPECT_THAT(said(request), HasSubstr("different names"));
}

TEST(CompareLedger, RemembersTimeAndFailures) {
  const TempFolder folder;
  {
    CompareLedger ledger(folder.path().string());
    ledger.spend(2.5);
    ledger.failed("a/seed-0", {4, "diverged at step 3"});
    ledger.failed("b/seed-0", {1, "gone"});
    ledger.forget_failure("b/seed-0");
    ledger.spend(1);
  }
  const CompareLedger again(folder.path().string());
  EXPECT_EQ(again.spent(), 3.5);
  ASSERT_NE(again.failure("a/seed-0"), nullptr);
  EXPECT_EQ(again.failure("a/seed-0")->code, 4);
  EXPECT_EQ(again.failure("b/seed-0"), nullptr);
  put(folder / "compare.json", "{\"spent\": 1}");
  EXPECT_THROW(CompareLedger(folder.path().string()), DataError);
}

TEST(Spread, IsMeanAndDeviationOfWhatIsKnown) {
  const Spread three = spread_of({1, 2, kUnknown, 3});
  EXPECT_EQ(three.mean, 2);
  EXPECT_NEAR(three.deviation, 1, 1e-12);
  EXPECT_EQ(three.count, 3);
  EXPECT_TRUE(std::isnan(spread_of({5}).deviation));
  EXPECT_EQ(spread_of({}).count, 0);
}

TEST(Compare, LaysRunsSideBySide) {
  const TempFolder folder;
  put_run(folder / "a", recipe_of("rope", 1), true, 2.0);
  put_run(folder / "b", recipe_of("rope", 2), true, 3.0);
  put_run(folder / "c", recipe_of("none", 1), false, 0);
  const std::vector<std::string> runs = {folder / "a", folder / "b", folder / "c"};
  const Outcome text = compare(runs);
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("2/2    2.500 ± 0.707  1.250 ± 0.000"));
  EXPECT_THAT(text.out, HasSubstr("restart 4x"));
  EXPECT_THAT(text.out, HasSubstr("in every row: attention linear:map=elu1, lr 0.003"));
  EXPECT_THAT(text.out, HasSubstr("lr 0.003, steps 10"));
  EXPECT_THAT(text.out,
              HasSubstr("unfinished: 0 of 1 seed, one stopped at step 5 of 10"));
  EXPECT_THAT(text.out, HasSubstr("metric: bits per byte (test)"));

  auto words = runs;
  words.push_back("--json");
  const json table = json::parse(compare(words).out);
  ASSERT_EQ(table["rows"].size(), 2u);
  EXPECT_EQ(table["rows"][0]["value"]["mean"], 2.5);
  EXPECT_EQ(table["rows"][0]["lengths"][1]["restart"]["mean"], 1.0);
  EXPECT_EQ(table["rows"][1]["seeds"], 0);
  EXPECT_TRUE(table["rows"][1]["value"]["mean"].is_null());

  words.back() = "--markdown";
  EXPECT_THAT(compare(words).out, HasSubstr("| encoding | seeds | metric |"));
}

/// Two seeds with a past and their twins without, as judged at 4x.
struct Twins : TempFolder {
  /// Loss and restart line of a seed; the second seed's lie 0.01 higher.
  void put_pair(const std::string& past, double loss, double restart) const {
    for (const uint64_t seed : {1, 2}) {
      Recipe recipe = recipe_of("none", seed);
      recipe.train.past = past, recipe.title = "past " + past;
      const std::string run = *this / (past + "-" + std::to_string(seed));
      put_run(run, recipe, true, 2.0);
      const double more = 0.01 * static_cast<double>(seed);
      put_lines(run, loss + 1.2 * more, restart + more);
      runs.push_back(run);
    }
  }
  mutable std::vector<std::string> runs;
};

TEST(Compare, ClaimsAGainAgainstTheLowerOfBothRestartLinesAlone) {
  const Twins twins;
  twins.put_pair("0", 1.30, 1.20);
  twins.put_pair("0,3", 1.25, 1.40);
  const Outcome outcome = compare(twins.runs);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("restart 4x     twin's restart 4x"));
  EXPECT_THAT(outcome.out, HasSubstr("1.415 ± 0.007  1.215 ± 0.007"));
  // It is 0.15 below its own line, and 0.05 above its twin's.
  EXPECT_THAT(outcome.out,
              HasSubstr("past 0,3 at 4x against its twin's restart line: +0.053 ± "
                        "0.013 nats (95 %, 2 seeds): a longer past harms"));
  EXPECT_THAT(outcome.out, HasSubstr("elu1 at 4x against its restart line: +0.1"));
  auto words = twins.runs;
  words.push_back("--json");
  const json table = json::parse(compare(words).out);
  EXPECT_NEAR(table["rows"][1]["lengths"][1]["twin"]["mean"].get<double>(), 1.215,
              1e-9);
  EXPECT_TRUE(table["rows"][0]["lengths"][1]["twin"]["mean"].is_null());
  EXPECT_EQ(table["rows"][1]["past"], "0,3");
}

TEST(Compare, ClaimsAGainWhereALongerPastIsUsed) {
  const Twins twins;
  twins.put_pair("0", 1.30, 1.20);
  twins.put_pair("0,3", 1.05, 1.15);
  EXPECT_THAT(compare(twins.runs).out,
              HasSubstr("past 0,3 at 4x against its restart line: -0.097 ± 0.013 nats "
                        "(95 %, 2 seeds): a longer past is used"));
}

TEST(Compare, ClaimsNothingWithoutATwinOrASecondSeed) {
  const Twins twins;
  twins.put_pair("0,3", 1.05, 1.15);
  EXPECT_THAT(compare(twins.runs).out,
              HasSubstr("no twin with train.past = 0 is here: no gain is claimed"));
  twins.put_pair("0", 1.30, 1.20);
  EXPECT_THAT(compare({twins.runs[0], twins.runs[2]}).out,
              HasSubstr("one seed claims nothing"));
  // Another number of steps makes no twin.
  Recipe longer = recipe_of("none", 1);
  longer.train.steps = 20;
  put_run(twins / "longer", longer, true, 2.0);
  EXPECT_THAT(compare({twins.runs[0], twins / "longer"}).out,
              HasSubstr("no twin with train.past = 0 is here"));
}

TEST(Compare, SaysWhereARestartLineIsOfAnOlderVersion) {
  const TempFolder folder;
  put_run(folder / "old", recipe_of("none", 1), true, 2.0);
  put_run(folder / "new", recipe_of("none", 2), true, 2.0);
  put_lines(folder / "new", 1.5, 1.0);
  const std::string out = compare({folder / "old", folder / "new"}).out;
  EXPECT_THAT(out, HasSubstr("/old has a restart line of an older version"));
  EXPECT_THAT(out, Not(HasSubstr("/new has")));
}

TEST(Compare, SaysWhatPicturesLookedLikeToEachEncoding) {
  const TempFolder folder;
  const auto put_seen = [&](const std::string& name, const std::string& encoding,
                            const std::string& seen) {
    put_run(folder / name, recipe_of(encoding, 1), true, 2.5);
    put(folder / name + "/run.json",
        "{\"parameters\": 1, \"grid_seen\": " + seen + "}");
  };
  put_seen("a", "rope:layout=half", "[14, 14]");
  put_seen("b", "alibi", "[]");
  const auto said = [&](const std::vector<std::string>& runs) {
    std::vector<std::string> words = {"compare"};
    for (const std::string& run : runs) words.push_back(folder / run);
    return run_captured({verb("compare")}, words).out;
  };
  EXPECT_THAT(said({"a", "b"}), HasSubstr("seen as a grid of 14 x 14 by rope"));
  EXPECT_THAT(said({"a", "b"}), HasSubstr("seen as a line of cells by alibi\n"));
  EXPECT_THAT(said({"a", "b"}), HasSubstr("--set model.grid=line shows all of them"));
  EXPECT_THAT(said({"b"}), HasSubstr("seen as a line of cells by every row\n"));
  EXPECT_THAT(said({"b"}), Not(HasSubstr("rows differ in what they see")));
}

TEST(Compare, HasAColumnForTheMetricAtEachLength) {
  const TempFolder folder;
  put_run(folder / "a", recipe_of("none", 1), true, 0.9);
  std::filesystem::remove(folder / "a/eval/position-test.json");
  put(folder / "a/eval/lengths-test.json",
      R"({"trained": 16, "lengths": [{"tokens": 16, "value": 0.9},
          {"tokens": 64, "value": 0.625}]})");
  const Outcome outcome = compare({folder / "a"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("metric 1x  metric 4x  train tok/s"));
  EXPECT_THAT(outcome.out, HasSubstr("0.900      0.625"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("restart")));
}

TEST(Compare, SaysWhichRunARowIsOf) {
  const TempFolder folder;
  put_run(folder / "short", recipe_of("none", 1), true, 2.0);
  Recipe longer = recipe_of("none", 1);
  longer.train.steps = 30;
  put_run(folder / "long", longer, true, 1.0);
  const Outcome outcome = compare({folder / "short", folder / "long"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const std::string line :
       {"short  none      10     2.000", "long   none      30     1.000"})
    EXPECT_THAT(outcome.out, HasSubstr("/" + line));
}

TEST(Compare, TakesACopyForNoSecondSample) {
  const TempFolder folder;
  put_run(folder / "a", recipe_of("none", 1), true, 2.0);
  put_run(folder / "copy", recipe_of("none", 1), true, 2.0);
  put_run(folder / "b", recipe_of("none", 2), true, 3.0);
  const json table =
      json::parse(compare({folder / "a", folder / "copy", folder / "b", "--json"}).out);
  ASSERT_EQ(table["rows"].size(), 2u);
  EXPECT_EQ(table["rows"][0]["runs"], json({folder / "a", folder / "b"}));
  EXPECT_EQ(table["rows"][0]["value"]["mean"], 2.5);
  EXPECT_EQ(table["rows"][1]["seeds_asked"], 1);
  EXPECT_TRUE(table["rows"][1]["value"]["deviation"].is_null());
  EXPECT_EQ(table["rows"][1]["remark"],
            "recipe and seed of " + folder / "a" + ": no second sample");
}

TEST(Compare, SaysOnWhatEachRowWasJudged) {
  const TempFolder folder;
  put_run(folder / "whole", recipe_of("none", 1), true, 2.0);
  put_run(folder / "part", recipe_of("none", 2), true, 0);
  std::filesystem::remove(folder / "part/eval/metric-test.json");
  put(folder / "part/eval/metric-test~examples=3.json",
      R"({"metric": "bits per byte", "value": 1, "examples": 3, "of": 217})");
  const Outcome outcome = compare({folder / "whole", folder / "part"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2.000 bits per byte (test)  "));
  EXPECT_THAT(outcome.out,
              HasSubstr("1.000 bits per byte (test, 3 of 217 examples)  "));
}

TEST(Compare, NamesADamagedFileAndGoesOn) {
  const TempFolder folder;
  put_run(folder / "a", recipe_of("none", 1), true, 2.0);
  put(folder / "a/eval/position-test.json", "{");
  const Outcome outcome = compare({folder / "a"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2.000"));
  EXPECT_THAT(outcome.out, HasSubstr("position-test.json is damaged and left out"));
}

TEST(Compare, TakesSetAnyNumberOfTimesWithOneValueEach) {
  const std::string help = compare({"--help"}).out;
  EXPECT_THAT(help, HasSubstr("--set KEY=VALUE "));
  EXPECT_THAT(help, Not(HasSubstr("--set KEY=VALUE ...")));
  const Corpus corpus;
  const Outcome outcome =
      compare({"--recipe", corpus.recipe(), "--out", corpus / "out", "--minutes", "0",
               "--set", "train.steps=3", "--set", "model.layers=0"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("model.layers"));
}

TEST(Compare, SaysWhatItNeeds) {
  const auto said = [](std::vector<std::string> words) {
    const Outcome outcome = compare(std::move(words));
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  EXPECT_THAT(said({}), HasSubstr("needs either --recipe and --out, or folders"));
  EXPECT_THAT(said({"--recipe", "a.toml"}), HasSubstr("needs --out"));
  EXPECT_THAT(said({"x", "--json", "--markdown"}), HasSubstr("got both"));
  EXPECT_THAT(said({"--recipe", "a.toml", "--out", "b", "--minutes", "-1"}),
              HasSubstr("--minutes: expected a number, 0 or more"));
  EXPECT_THAT(said({"--recipe", "a.toml", "--out", "b", "--seeds", "0"}),
              HasSubstr("--seeds"));
}

TEST(Compare, PrintsCellsThatNobodyTrainedOrCan) {
  const Corpus corpus;
  const Outcome outcome =
      compare({"--recipe", corpus.recipe(), "--encodings", "huang;none", "--out",
               corpus / "out", "--minutes", "0"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("not served: encoding 'huang'"));
  EXPECT_THAT(outcome.out, HasSubstr("not started: 0 of 1 seed"));
  EXPECT_THAT(outcome.out, HasSubstr("0 of 1 runs are done"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace lagwise::cli
