#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <variant>

#include "lagwise/cli/program.h"
#include "lagwise/cli/report_page.h"
#include "lagwise/cli/run_summary.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/errors.h"
#include "lagwise/data/testing_files.h"

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
  EXPECT_FALSE(run.summary->finished);
}

TEST(ReportPage, ShowsARunThatHasOnlyBegun) {
  const TempFolder folder;
  put(folder.path() / "young" / "recipe.toml", kRecipe);
  const auto runs = read_runs({folder / "young"});
  const report::Page page = report_page(runs);
  EXPECT_EQ(page.title, "young");
  ASSERT_EQ(page.sections.size(), 1u);  // the table alone
  EXPECT_THAT(page_json(page), HasSubstr("step 0 of 100"));
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

TEST(Report, WritesThePageAndSaysSo) {
  const TempFolder folder;
  put(folder.path() / "run" / "recipe.toml", kRecipe);
  const std::string out = folder / "page.html";
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(run_program({add_report}, {"report", folder / "run", "--out", out}), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("1 run, "));
  EXPECT_GT(std::filesystem::file_size(out), 10000u);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_program({add_report}, {"report", folder / "none", "--out", out}), 3);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("a run's folder"));
}

}  // namespace
}  // namespace lagwise::cli
