#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <type_traits>
#include <variant>

#include "lagwise/cli/program.h"
#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/errors.h"
#include "lagwise/data/testing_files.h"
#include "lagwise/study/report/page.h"
#include "lagwise/study/run_summary.h"
#include "lagwise/train/run_folder.h"

namespace lagwise::cli {
namespace {

using ::lagwise::testing::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kRecipe = "[data]\nlength = 64\n[train]\nsteps = 100\n";

void put(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

std::vector<std::string> names(const std::vector<RunRecord>& runs) {
  std::vector<std::string> all;
  all.reserve(runs.size());
  for (const RunRecord& run : runs) all.push_back(run.name);
  return all;
}

const report::Charts& charts(const report::Section& section, size_t block = 0) {
  return std::get<report::Charts>(section.blocks.at(block));
}

TEST(ReadRuns, TakesEveryRunBelowAFolder) {
  const TempFolder folder;
  for (const char* run : {"b/seed-0", "a", "b/seed-1", "c"})
    put(folder.path() / run / "recipe.toml", kRecipe);
  put(folder.path() / "notes" / "x.txt", "");
  EXPECT_THAT(names(read_runs({folder.path().string()})),
              ElementsAre("a", "seed-0", "seed-1", "c"));
  EXPECT_THAT(names(read_runs({folder / "a", folder / "a/."})), ElementsAre("a"));
}

TEST(ReadRuns, TellsRunsOfOneNameApart) {
  const TempFolder folder;
  for (const char* run : {"rope/seed-0", "lrpe/seed-0"})
    put(folder.path() / run / "recipe.toml", kRecipe);
  EXPECT_THAT(names(read_runs({folder.path().string()})),
              ElementsAre("lrpe/seed-0", "rope/seed-0"));
}

TEST(ReadRuns, RefusesAFolderWithoutRuns) {
  const TempFolder folder;
  EXPECT_THROW(read_runs({folder.path().string()}), DataError);
  EXPECT_THROW(read_runs({folder / "nowhere"}), DataError);
}

TEST(ReadRun, LivesWithHalfALineAndLinesToldTwice) {
  const TempFolder folder;
  put(folder.path() / "recipe.toml", kRecipe);
  put(folder.path() / "metrics.jsonl",
      "{\"step\": 10, \"loss\": 3}\n{\"step\": 20, \"loss\": 9}\n[]\n"
      "{\"step\": 20, \"loss\": 2}\n"
      "{\"step\": 20, \"split\": \"valid\", \"loss\": 2.5}\n{\"step\": 30, \"lo");
  put(folder.path() / "eval" / "stream-valid.json", "{\"points\": [");
  const RunRecord run = read_run(folder.path().string());
  ASSERT_EQ(run.training.size(), 2u);
  EXPECT_EQ(number_in(run.training[1], "loss"), 2);
  EXPECT_EQ(run.evaluations.size(), 1u);
  EXPECT_TRUE(run.found("stream").is_null());
  EXPECT_FALSE(run.summary.finished());
  EXPECT_THAT(run.files.damaged, ElementsAre(folder / "eval/stream-valid.json"));
}

TEST(ReportPage, ShowsARunThatHasOnlyBegun) {
  const TempFolder folder;
  put(folder.path() / "young" / "recipe.toml", kRecipe);
  const auto runs = read_runs({folder / "young"});
  const report::Page page = report_page(runs);
  EXPECT_EQ(page.title, "young");
  ASSERT_EQ(page.sections.size(), 1u);  // the table alone
  EXPECT_THAT(page_json(page), HasSubstr("not started"));
}

/// The texts and numbers of a column of the table of runs; none: there is no such.
std::vector<report::Cell> column(const std::vector<RunRecord>& runs,
                                 const std::string& label) {
  const report::Section section = runs_section(runs);
  const auto& table = std::get<report::Table>(section.blocks.at(0));
  std::vector<report::Cell> cells;
  for (size_t i = 0; i < table.columns.size(); ++i)
    if (table.columns[i].label == label)
      for (const auto& row : table.rows) cells.push_back(row[i]);
  return cells;
}

constexpr const char* kValid =
    R"({"step": 5, "split": "valid", "loss": 1, "metric": "bits", "value": 1.5})";

TEST(ReportPage, HasAColumnForEachSplitSoThatNoneIsBestOnAnother) {
  const TempFolder folder;
  for (const char* run : {"judged", "part", "stopped"}) {
    put(folder.path() / run / "recipe.toml", kRecipe);
    put(folder.path() / run / "metrics.jsonl", std::string(kValid) + "\n");
  }
  put(folder.path() / "judged/eval/metric-test.json",
      R"({"metric": "bits", "value": 2})");
  put(folder.path() / "part/eval/metric-test~examples=3.json",
      R"({"metric": "bits", "value": 1, "examples": 3, "of": 9})");
  const auto runs = read_runs({folder.path().string()});
  const auto test = column(runs, "bits (test)");
  ASSERT_EQ(test.size(), 3u);
  EXPECT_EQ(test[0].number, 2);
  EXPECT_TRUE(std::isnan(test[1].number));
  EXPECT_TRUE(std::isnan(test[2].number));
  const auto part = column(runs, "bits (test, 3 of 9 examples)");
  ASSERT_EQ(part.size(), 3u);
  EXPECT_EQ(part[1].number, 1);
  const auto valid = column(runs, "bits (valid, in training)");
  ASSERT_EQ(valid.size(), 3u);
  for (const report::Cell& cell : valid) EXPECT_EQ(cell.number, 1.5);
  EXPECT_TRUE(
      column(read_runs({folder / "judged"}), "bits (valid, in training)").empty());
}

TEST(ReportPage, TellsLossesByPositionOfTwoSplitsApart) {
  const TempFolder folder;
  for (const std::string split : {"test", "valid"}) {
    const auto run = folder.path() / ("on-" + split);
    put(run / "recipe.toml", kRecipe);
    put(run / "eval" / ("metric-" + split + ".json"),
        R"({"metric": "bits", "value": 2})");
    put(run / "eval" / ("position-" + split + ".json"),
        R"({"trained": 64, "split": ")" + split + R"(", "buckets": [{"begin": 0,
        "end": 64, "loss": 2}], "spans": [{"begin": 32, "end": 64, "loss": 2,
        "restart": 2}, {"begin": 128, "end": 256, "loss": 3, "restart": 2.5}]})");
  }
  const auto runs = read_runs({folder.path().string()});
  EXPECT_TRUE(column(runs, "loss at 4×").empty());
  EXPECT_EQ(column(runs, "loss at 4× (test)").at(0).number, 3);
  EXPECT_TRUE(std::isnan(column(runs, "loss at 4× (test)").at(1).number));
  EXPECT_EQ(column(runs, "restart at 4× (valid)").at(1).number, 2.5);
  EXPECT_THAT(charts(length_section(runs)).tabs.at(0).note,
              HasSubstr("On the split valid: on-valid."));
  EXPECT_EQ(loss_at(runs[0], 4), 3);
  EXPECT_EQ(loss_at(runs[0], 4, Past::restarted), 2.5);
  static_assert(
      !std::is_invocable_v<decltype(loss_at), RunRecord, int64_t, const char*>);
}

TEST(ReportPage, SetsTheRestartLineOfATwinBesideOnesOwn) {
  const TempFolder folder;
  const auto add = [&](const std::string& name, const std::string& past,
                       const std::string& restart) {
    put(folder.path() / name / "recipe.toml", kRecipe + ("past = \"" + past + "\"\n"));
    put(folder.path() / name / "eval/metric-test.json",
        R"({"metric": "bits", "value": 2})");
    put(folder.path() / name / "eval/position-test.json",
        R"({"trained": 64, "spans": [{"begin": 128, "end": 256, "loss": 3, "restart": )" +
            restart +
            R"(}], "contexts": [{"context": 32, "loss": 3.5}, {"context": 64, "loss": 3}]})");
  };
  add("past", "0,3", "2.75");
  add("twin", "0", "2.5");
  const auto runs = read_runs({folder.path().string()});
  EXPECT_EQ(column(runs, "twin's restart at 4×").at(0).number, 2.5);
  EXPECT_TRUE(std::isnan(column(runs, "twin's restart at 4×").at(1).number));
  EXPECT_EQ(column(runs, "past").at(0).text, "0,3");
  EXPECT_TRUE(column(read_runs({folder / "past"}), "twin's restart at 4×").empty());
  const report::Section section = length_section(runs);
  const report::Chart& context = charts(section).tabs.at(0);
  EXPECT_EQ(context.tab, "context");
  ASSERT_EQ(context.series.size(), 2u);
  EXPECT_THAT(context.series[0].x, ElementsAre(32, 64));
  EXPECT_THAT(context.series[0].y, ElementsAre(3.5, 3));
}

TEST(ReportPage, SetsLossAgainstMinutesOfTrainingAndTheSpeedOfWriting) {
  const TempFolder folder;
  put(folder / "recipe.toml", kRecipe);
  auto runs = read_runs({folder.path().string()});
  EXPECT_TRUE(cost_section(runs).blocks.empty());
  put(folder / "metrics.jsonl",
      R"({"step": 4, "loss": 3, "seconds": 60}
{"step": 5, "split": "valid", "loss": 2.5}
{"step": 10, "loss": 2, "seconds": 150}
{"step": 10, "split": "valid", "loss": 2.25}
)");
  put(folder / "eval/metric-test.json", R"({"metric": "bits", "value": 2})");
  put(folder / "eval/decode-test.json",
      R"({"chunk": 1, "points": [{"tokens_per_second": 1}, {"tokens_per_second": 50},
          {"tokens_per_second": 50}]})");
  runs = read_runs({folder.path().string()});
  const report::Section section = cost_section(runs);
  const auto& tabs = charts(section).tabs;
  ASSERT_EQ(tabs.size(), 2u);
  EXPECT_THAT(tabs[0].series.at(0).x, ElementsAre(1, 2.5));  // minutes
  EXPECT_THAT(tabs[0].series.at(0).y, ElementsAre(2.5, 2.25));
  EXPECT_THAT(tabs[1].series.at(0).x, ElementsAre(50));
  EXPECT_THAT(tabs[1].series.at(0).y, ElementsAre(2.25));
}

TEST(ReportPage, DrawsTheMeanOfSeedsWhereCostIsWeighed) {
  const TempFolder folder;
  const auto add = [&](const std::string& run, const std::string& seed,
                       const std::string& loss, const std::string& speed) {
    put(folder.path() / run / "recipe.toml", kRecipe + ("seed = " + seed + "\n"));
    put(folder.path() / run / "metrics.jsonl",
        R"({"step": 1, "loss": 3, "seconds": )" + speed +
            "}\n"
            R"({"step": 1, "split": "valid", "loss": )" +
            loss + "}\n");
    put(folder.path() / run / "eval/metric-test.json",
        R"({"metric": "bits", "value": 2})");
    const std::string point = R"({"tokens_per_second": )" + speed + "}";
    put(folder.path() / run / "eval/decode-test.json",
        R"({"chunk": 1, "points": [)" + point + ", " + point + ", " + point + "]}");
  };
  add("a/seed-0", "0", "2", "60");
  add("a/seed-1", "1", "3", "180");
  const auto runs = read_runs({folder.path().string()});
  const report::Section section = cost_section(runs);
  ASSERT_EQ(charts(section).tabs.size(), 2u);
  for (const report::Chart& chart : charts(section).tabs) {
    ASSERT_EQ(chart.series.size(), 1u);
    EXPECT_EQ(chart.series[0].label, "none, linear:map=elu1");
    EXPECT_THAT(chart.series[0].y, ElementsAre(2.5));
  }
  EXPECT_THAT(charts(section).tabs[0].series[0].x, ElementsAre(2));
  EXPECT_THAT(charts(section).tabs[1].series[0].x, ElementsAre(120));
}

TEST(ReportPage, CountsRunsByWhatBecameOfThem) {
  const TempFolder folder;
  const std::string line = "{\"step\": 5, \"loss\": 2}\n";
  for (const char* run : {"a", "b", "c", "d", "e"})
    put(folder.path() / run / "recipe.toml", kRecipe);
  put(folder.path() / "a/metrics.jsonl", line);
  put(folder.path() / "b/metrics.jsonl", line);
  put(folder.path() / "c/metrics.jsonl",
      line + "{\"step\": 6, \"diverged\": \"the loss\"}\n");
  put(folder.path() / "e/metrics.jsonl", line + "{\"step\": 100, \"done\": true}\n");
  const RunFolder trains(folder / "b");
  const auto runs = read_runs({folder.path().string()});
  EXPECT_THAT(report_page(runs).lede,
              HasSubstr(". 1 still training, 1 stopped, 1 diverged, 1 not started."));
  std::vector<std::string> states;
  for (const report::Cell& cell : column(runs, "state")) states.push_back(cell.text);
  EXPECT_THAT(states, ElementsAre("stopped at step 5 of 100", "training, step 5 of 100",
                                  "diverged at step 6 of 100", "not started",
                                  "done, 100 steps"));
}

TEST(ReportPage, DrawsTheRestartLineInTheColourOfItsRun) {
  const TempFolder folder;
  put(folder.path() / "recipe.toml", kRecipe);
  put(folder.path() / "eval" / "position-test.json",
      R"({"trained": 64, "buckets": [
        {"begin": 0, "end": 64, "loss": 2, "error": 0.1, "restart": 2, "difference": 0},
        {"begin": 64, "end": 128, "loss": 3, "error": null, "restart": 2.5,
         "difference": 0.5}]})");
  auto runs = read_runs({folder.path().string()});
  runs[0].name = "r";
  const report::Section section = length_section(runs);
  const report::Chart& loss = charts(section).tabs.at(0);
  EXPECT_EQ(loss.mark, 64);
  ASSERT_EQ(loss.series.size(), 2u);
  EXPECT_THAT(loss.series[0].x, ElementsAre(32, 96));
  EXPECT_THAT(loss.series[0].high, ElementsAre(2.1, 3));
  EXPECT_EQ(loss.series[1].of, "r");
  EXPECT_TRUE(loss.series[1].dashed);
  EXPECT_THAT(charts(section).tabs.at(1).series[0].y, ElementsAre(0, 0.5));
}

TEST(ReportPage, LaysMusicOfOneNameSideBySide) {
  const TempFolder folder;
  const std::string card = R"({"prompt": "song", "text": "", "music": {
    "ticks_per_beat": 480, "us_per_beat": 600000, "end": 1920, "prompt_end": 480,
    "trained_end": 960, "tracks": [
      {"name": "bass", "channel": 0, "program": 33, "notes": [[0, 240, 40, 90]]},
      {"name": "", "channel": 9, "program": 0, "notes": [[480, 500, 36, 99], [1, 2]]}]}})";
  for (const char* run : {"a", "b"}) {
    put(folder.path() / run / "recipe.toml", kRecipe);
    put(folder.path() / run / "samples" / "song-seed1-1.json", card);
  }
  const report::Section section = music_section(read_runs({folder.path().string()}));
  const auto& music = std::get<report::Music>(section.blocks.at(0));
  ASSERT_EQ(music.pieces.size(), 1u);
  ASSERT_EQ(music.pieces[0].rolls.size(), 2u);
  const report::Roll& roll = music.pieces[0].rolls[1];
  EXPECT_EQ(roll.run, "b");
  EXPECT_EQ(roll.beats, 4);
  EXPECT_EQ(roll.prompt_end, 1);
  EXPECT_EQ(roll.trained_end, 2);
  EXPECT_EQ(roll.tempos.at(0).beats_per_minute, 100);
  EXPECT_EQ(roll.tracks.at(0).notes.at(0).end, 0.5);
  EXPECT_TRUE(roll.tracks.at(1).drums);
  EXPECT_EQ(roll.tracks.at(1).notes.size(), 1u);
}

TEST(Thin, KeepsMeansOfNeighbours) {
  report::Series series{"s", {1, 2, 3, 4}, {1, 3, 5, 9}};
  thin(series, 2);
  EXPECT_THAT(series.y, ElementsAre(2, 7));
}

TEST(Report, NamesWhatIsDamagedAndShowsTheRest) {
  const TempFolder folder;
  for (const char* run : {"a", "b"}) put(folder.path() / run / "recipe.toml", kRecipe);
  put(folder.path() / "a/eval/metric-test.json", "{\"metric\": ");
  put(folder.path() / "c/recipe.toml", "[train]\nsteps = \"many\"\n");
  const std::string out = folder / "page.html";
  const Outcome outcome =
      run_captured({verb("report")}, {"report", folder.path().string(), "--out", out});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2 runs, "));
  EXPECT_THAT(outcome.err,
              HasSubstr("a/eval/metric-test.json: expected a JSON object"));
  EXPECT_THAT(outcome.err, HasSubstr("c/recipe.toml"));
  EXPECT_THAT(report_page(read_runs({folder / "a", folder / "b"})).lede,
              HasSubstr("metric-test.json of a is damaged and left out."));
  EXPECT_EQ(run_captured({verb("report")}, {"report", folder / "c", "--out", out}).code,
            2);
}

TEST(Report, LetsTheModelOfOneRunPlayOn) {
  const TempFolder folder;
  for (const char* run : {"a", "b"}) put(folder.path() / run / "recipe.toml", kRecipe);
  put(folder.path() / "b/samples/song.json",
      R"({"prompt_tokens": [5, 6], "temperature": 0.5, "music": {"ticks_per_beat": 4,
          "end": 8, "tracks": [{"name": "bass", "notes": [[0, 4, 40, 80]]}]}})");
  put(folder.path() / "b.lagwise", "model");
  put(folder.path() / "x.wasm", "module");
  const std::string out = folder / "page.html";
  const auto report = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"report", folder / "a", folder / "b", "--out",
                                      out};
    words.insert(words.end(), more.begin(), more.end());
    return run_captured({verb("report")}, words);
  };
  const std::string model = folder / "b.lagwise";
  Outcome outcome = report(
      {"--play-on", folder / "b", "--model", model, "--module", folder / "x.wasm"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = lagwise::testing::contents(out);
  EXPECT_THAT(
      page,
      HasSubstr(R"("playOn":{"run":"b","module":"bW9kdWxl","model":"bW9kZWw="})"));
  EXPECT_THAT(page,
              HasSubstr(R"("tokens":[5,6],"sampling":{"temperature":0.5,"topP":1})"));
  EXPECT_EQ(
      report({"--play-on", folder / "b", "--model", model, "--module", "none.wasm"})
          .code,
      0);
  EXPECT_THAT(lagwise::testing::contents(out), HasSubstr(R"("module":"",)"));

  outcome = report({"--play-on", folder / "c", "--model", model});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("--play-on: expected one of the runs on the page"));
  EXPECT_EQ(report({"--play-on", folder / "b"}).code, 2);
  EXPECT_EQ(report({"--model", model}).code, 2);
  EXPECT_EQ(report({"--play-on", folder / "b", "--model", folder / "none"}).code, 3);
}

TEST(Report, WritesThePageAndSaysSo) {
  const TempFolder folder;
  put(folder.path() / "run" / "recipe.toml", kRecipe);
  const std::string out = folder / "page.html";
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(run_program({verb("report")}, {"report", folder / "run", "--out", out}), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("1 run, "));
  EXPECT_GT(std::filesystem::file_size(out), 10000u);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_program({verb("report")}, {"report", folder / "none", "--out", out}),
            3);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("a run's folder"));
}

}  // namespace
}  // namespace lagwise::cli
