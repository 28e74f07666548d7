// Music that runs wrote, for `lagwise report`: rolls to see and hear, side by side for
// one prompt, and how like their sources continuations are.

#include "lagwise/data/music/music.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lagwise/study/compare/likeness.h"
#include "lagwise/study/report/page.h"
#include "lagwise/study/run_files.h"

namespace lagwise {
namespace {

using report::Chart;
using report::Series;
report::RollTrack track_of(const Json& json, double ticks) {
  report::RollTrack track;
  track.name = text_in(json, "name");
  const double program = number_in(json, "program");
  track.program = program >= 0 && program < 128 ? int(program) : 0;
  track.drums = number_in(json, "channel") == data::kDrumChannel;
  if (track.name.empty()) track.name = track.drums ? "drums" : "track";
  if (!json.contains("notes") || !json["notes"].is_array()) return track;
  for (const Json& note : json["notes"]) {
    if (!note.is_array() || note.size() != 4 || !note[0].is_number_integer()) continue;
    track.notes.push_back({note[0].get<double>() / ticks, note[1].get<double>() / ticks,
                           note[2].get<int>(), note[3].get<int>()});
  }
  return track;
}

/// The roll of a sample's card; no tracks: it has no music.
report::Roll roll_of(const std::string& run, const Json& card) {
  report::Roll roll{.run = run};
  if (!card.contains("music")) return roll;
  const Json& music = card["music"];
  const double ticks = number_in(music, "ticks_per_beat");
  const double us_per_beat = number_in(music, "us_per_beat");
  if (!(ticks > 0) || !music.contains("tracks")) return roll;
  const auto beats = [&](const char* key) {
    const double at = number_in(music, key) / ticks;
    return std::isnan(at) ? 0 : at;
  };
  roll.prompt_end = beats("prompt_end");
  roll.trained_end = beats("trained_end");
  roll.beats = beats("end");
  if (roll.trained_end >= roll.beats) roll.trained_end = 0;  // never reached
  if (us_per_beat > 0) roll.tempos = {{0, 6e7 / us_per_beat}};
  for (const Json& track : music["tracks"])
    roll.tracks.push_back(track_of(track, ticks));
  return roll;
}

/// Adds what a model in the page goes on from, and how the sample was drawn.
void let_play_on(report::Roll& roll, const Json& card) {
  const Json tokens = card.value("prompt_tokens", Json::array());
  for (const Json& token : tokens)
    if (token.is_number_integer()) roll.prompt_tokens.push_back(token.get<int64_t>());
  const double temperature = number_in(card, "temperature");
  const double top_p = number_in(card, "top_p");
  if (temperature >= 0) roll.temperature = temperature;
  if (top_p >= 0) roll.top_p = top_p;
}

report::Music rolls_of(const std::vector<RunRecord>& runs,
                       const std::string& plays_on) {
  std::map<std::string, std::vector<report::Roll>> pieces;
  for (const RunRecord& run : runs)
    for (const auto& [name, card] : run.files.cards)
      if (report::Roll roll = roll_of(run.name, card); !roll.tracks.empty()) {
        if (run.name == plays_on) let_play_on(roll, card);
        pieces[name].push_back(std::move(roll));
      }
  report::Music music{"Continuations", {}};
  for (auto& [name, rolls] : pieces) music.pieces.push_back({name, std::move(rolls)});
  return music;
}

/// By quarters of a continuation: `part` is written, truth or shuffled.
Series quarters(const RunRecord& run, const std::string& likeness,
                const std::string& part) {
  Series series{run.name, {}, {}};
  const Json& found = run.found("continuations");
  if (judged_with_drums_among(found)) return series;
  if (!found.contains(likeness) || !found[likeness].contains(part)) return series;
  const Json& figures = found[likeness][part];
  const Json means = figures.value("mean", Json::array());
  const Json errors = figures.value("error", Json::array());
  for (size_t i = 0; i < means.size() && i < errors.size(); ++i) {
    const double y = means[i].is_number() ? means[i].get<double>() : NAN;
    const double error = errors[i].is_number() ? errors[i].get<double>() : 0;
    series.x.push_back(double(i + 1)), series.y.push_back(y);
    series.low.push_back(y - error), series.high.push_back(y + error);
  }
  return series;
}

/// With the piece's own continuation, and any other piece, to read it by.
Chart likeness_chart(const std::vector<RunRecord>& runs, const std::string& likeness,
                     const std::string& what) {
  Chart chart{"Likeness to the source in " + what,
              {"quarter of the continuation", false, "count"},
              {"similarity"},
              {}};
  chart.note =
      "How like the style of a continuation is to that of its source. Between the "
      "source's own continuation, which is as good as can be expected, and what was "
      "written against another piece, which any music of this kind gets. Bands: 95 % "
      "confidence.";
  Series truth, other;
  for (const RunRecord& run : runs) {
    Series written = quarters(run, likeness, "written");
    if (std::ranges::all_of(written.y, [](double y) { return std::isnan(y); }))
      continue;
    chart.series.push_back(written);
    truth = quarters(run, likeness, "truth");
    other = quarters(run, likeness, "shuffled");
  }
  if (chart.series.empty()) return chart;
  for (auto& [line, name] : {std::pair{&truth, "its own continuation"},
                             std::pair{&other, "another piece"}}) {
    line->label = name, line->dashed = true;
    line->low.clear(), line->high.clear();
    if (!line->x.empty()) chart.series.push_back(*line);
  }
  return chart;
}

/// Which runs have figures that are nothing to set beside the others'.
std::string note_on_older(const std::vector<RunRecord>& runs) {
  std::vector<std::string> older;
  for (const RunRecord& run : runs)
    if (judged_with_drums_among(run.found("continuations"))) older.push_back(run.name);
  if (older.empty()) return "";
  return fmt::format(
      "The likeness of {} is left out: an earlier version found it, with drums "
      "averaged "
      "in; lagwise eval RUN --continuations N finds it anew. ",
      fmt::join(older, ", "));
}

}  // namespace

report::Section music_section(const std::vector<RunRecord>& runs,
                              const std::string& plays_on) {
  report::Section section{"Music", "", {}};
  for (const auto& [key, what] : {std::pair{"time_pitch", "time and pitch"},
                                  std::pair{"onset_duration", "onset and duration"},
                                  std::pair{"onset_drum", "drums"}})
    if (Chart chart = likeness_chart(runs, key, what); !chart.series.empty())
      section.blocks.push_back(report::Charts{{std::move(chart)}});
  section.note = note_on_older(runs);
  if (report::Music music = rolls_of(runs, plays_on); !music.pieces.empty()) {
    section.note += "Click into a roll to hear it from there. The prompt is shaded.";
    section.blocks.push_back(std::move(music));
  }
  return section;
}

}  // namespace lagwise
