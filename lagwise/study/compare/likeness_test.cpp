#include "lagwise/study/compare/likeness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"
#include "lagwise/study/report/page.h"
#include "lagwise/study/run_record.h"

namespace lagwise {
namespace {

using lagwise::testing::put;
using lagwise::testing::TempFolder;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

json part(double first) {
  const json line = {{"mean", {first, 0.5, nullptr, 0.25}},
                     {"error", {0.1, 0.1, nullptr, 0.1}}};
  return {{"written", line}, {"truth", line}, {"shuffled", line}};
}

json silent() {
  const json line = {{"mean", {nullptr, nullptr, nullptr, nullptr}},
                     {"error", {nullptr, nullptr, nullptr, nullptr}}};
  return {{"written", line}, {"truth", line}, {"shuffled", line}};
}

/// A run whose continuations were judged; of an earlier version without drums.
RunSummary judged(const TempFolder& folder, const std::string& encoding,
                  const json& drums) {
  RunSummary run;
  run.folder = folder / encoding;
  run.recipe.model.encoding = encoding;
  put(run.folder + "/recipe.toml", "[model]\nencoding = \"" + encoding + "\"\n");
  json found = {{"count", 10}, {"prompt", 128}, {"length", 896}};
  found["time_pitch"] = part(0.75), found["onset_duration"] = part(0.625);
  if (!drums.is_null()) found["onset_drum"] = drums;
  put(run.folder + "/eval/continuations-test.json", found.dump());
  return run;
}

TEST(CompareLikeness, ShowsDrumsBesideTheMelodicTracks) {
  const TempFolder folder;
  const auto lines = likeness_lines({judged(folder, "alibi", part(0.875))});
  EXPECT_THAT(
      lines,
      ElementsAre(
          "",
          "likeness of style to the source, 0 to 1, of 10 continuations up to 1024 "
          "tokens, by quarters of their time",
          "  encoding            time and pitch             onset and duration         "
          "drums",
          "  alibi               0.750 0.500     - 0.250    0.625 0.500     - 0.250    "
          "0.875 0.500     - 0.250",
          "  the piece itself    0.750 0.500     - 0.250    0.625 0.500     - 0.250    "
          "0.875 0.500     - 0.250",
          "  another's source    0.750 0.500     - 0.250    0.625 0.500     - 0.250    "
          "0.875 0.500     - 0.250"));
  EXPECT_THAT(likeness_lines({judged(folder, "none", silent())})[2],
              Not(HasSubstr("drums")));
  EXPECT_THAT(likeness_lines({}), IsEmpty());
}

TEST(CompareLikeness, LeavesOutFiguresOfAnEarlierDefinitionAndSaysSo) {
  const TempFolder folder;
  const RunSummary old = judged(folder, "rope", nullptr);
  const std::string note =
      "likeness of rope left out: found by an earlier version, with drums averaged in; "
      "lagwise eval RUN --continuations N finds it anew";
  EXPECT_THAT(likeness_lines({old}), ElementsAre(note));
  const auto lines = likeness_lines({old, judged(folder, "alibi", part(0.875))});
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_THAT(lines[3], HasSubstr("alibi"));
  EXPECT_EQ(lines[6], note);

  const report::Section section = music_section(read_runs({folder.path().string()}));
  EXPECT_THAT(section.note, HasSubstr("The likeness of rope is left out"));
  ASSERT_EQ(section.blocks.size(), 3u);
  for (const auto& block : section.blocks) {
    const report::Chart& chart = std::get<report::Charts>(block).tabs.at(0);
    EXPECT_EQ(chart.series.size(), 3u);  // one run, its own continuation, another piece
    EXPECT_EQ(chart.series[0].label, "alibi");
  }
}

}  // namespace
}  // namespace lagwise
