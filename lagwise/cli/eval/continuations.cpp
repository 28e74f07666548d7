#include "lagwise/cli/eval/continuations.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/generate/music.h"
#include "lagwise/study/card.h"

namespace lagwise::cli {
namespace {

using Json = nlohmann::ordered_json;

ContinuationPlan plan_of(const Run& run, const std::string& split,
                         const ContinuationFlags& flags) {
  const int64_t trained = run.model->config().length;
  ContinuationPlan plan;
  plan.split = split;
  plan.count = flags.count;
  plan.bars = flags.bars;
  plan.prompt = flags.prompt > 0 ? flags.prompt : std::max<int64_t>(trained / 4, 1);
  plan.length =
      flags.length > 0 ? flags.length : std::max<int64_t>(4 * trained - plan.prompt, 1);
  plan.sampling = {.temperature = flags.temperature,
                   .top_p = flags.top_p,
                   .seed = static_cast<uint64_t>(flags.seed)};
  return plan;
}

void save(const std::string& folder, const Run& run, const ContinuationPlan& plan,
          const std::vector<Continuation>& all) {
  const data::TokenScheme& scheme = *run.task->music();
  for (size_t i = 0; i < all.size(); ++i) {
    const auto begin = all[i].piece.begin();
    const MusicSample music{{begin, begin + all[i].prompt},
                            {all[i].written.begin(), all[i].written.end()}};
    const Sample sample{.prompt = fmt::format("{} piece {}", plan.split, i),
                        .text = run.task->decode(music.written),
                        .tokens = music.written,
                        .prompt_tokens = music.prompt,
                        .music = music_json(scheme, music, run.model->config().length)};
    write_card(folder, run, plan.sampling, sample);
    write_music(std::filesystem::path(folder) / card_name(sample, plan.sampling),
                scheme, music, false);
  }
}

std::string row_text(const char* name, const QuarterFigures& figures) {
  std::string text = fmt::format("  {:<18}", name);
  for (const QuarterFigure& quarter : figures)
    text += quarter.counted > 0
                ? fmt::format(" {:>5.3f} ± {:.3f} ", quarter.mean, quarter.error)
                : fmt::format(" {:>13} ", "-");
  return text + "\n";
}

/// Nothing where no piece has such tracks: the likeness of drums in piano music.
std::string part_text(const char* title, const ContinuationFigures& figures,
                      QuarterFigures StyleFigures::*part) {
  const auto silent = [&](const StyleFigures& line) {
    return std::ranges::all_of(line.*part,
                               [](const auto& q) { return q.counted == 0; });
  };
  if (silent(figures.written) && silent(figures.truth)) return "";
  return fmt::format("{:<20} {:>13} {:>14} {:>14} {:>14}\n", title, "1st quarter",
                     "2nd quarter", "3rd quarter", "4th quarter") +
         row_text("this model", figures.written.*part) +
         row_text("the piece itself", figures.truth.*part) +
         row_text("another's source", figures.shuffled.*part);
}

std::string notes_text(const char* name, const data::NoteStatistics& notes) {
  return fmt::format(
      "  {:<18} {:.2f} notes a beat, pitch {:.1f} (spread {:.1f}), {:.2f} beats long\n",
      name, notes.notes_per_beat, notes.mean_pitch, notes.pitch_spread,
      notes.mean_duration);
}

Json quarters_json(const QuarterFigures& figures) {
  Json mean = Json::array(), error = Json::array(), counted = Json::array();
  for (const QuarterFigure& quarter : figures) {
    mean.push_back(quarter.mean), error.push_back(quarter.error);
    counted.push_back(quarter.counted);
  }
  return {{"mean", mean}, {"error", error}, {"counted", counted}};
}

Json part_json(const ContinuationFigures& figures, QuarterFigures StyleFigures::*part) {
  return {{"written", quarters_json(figures.written.*part)},
          {"truth", quarters_json(figures.truth.*part)},
          {"shuffled", quarters_json(figures.shuffled.*part)}};
}

Json notes_json(const data::NoteStatistics& notes) {
  return {{"notes_per_beat", notes.notes_per_beat},
          {"mean_pitch", notes.mean_pitch},
          {"pitch_spread", notes.pitch_spread},
          {"mean_duration", notes.mean_duration}};
}

}  // namespace

void add_continuation_flags(CLI::App& verb, ContinuationFlags& flags) {
  CLI::Option* asked =
      verb.add_option("--continuations", flags.count,
                      "Instead, of music: go on from the beginnings of so many pieces, "
                      "and judge how like them in style what was written is")
          ->check(whole_number(2, 4096));
  const auto add = [&](const char* name, auto& value, const char* what) {
    return verb.add_option(name, value, what)->needs(asked);
  };
  CLI::Option* tokens =
      add("--prompt-tokens", flags.prompt,
          "Tokens of a piece that are given; a quarter of the training "
          "length unless given")
          ->check(whole_number(1, kMostCount));
  add("--prompt-bars", flags.bars,
      "Instead: the first so many bars of a piece, of four beats")
      ->check(whole_number(1, kMostCount))
      ->excludes(tokens);
  add("--length", flags.length,
      "Tokens to write; up to four times the training length unless given")
      ->check(whole_number(1, kMostCount));
  add("--temperature", flags.temperature, "Of drawing tokens; 0: the most likely")
      ->check(number(0, 1000))
      ->capture_default_str();
  add("--top-p", flags.top_p,
      "Draw from the fewest tokens that are so probable, 0 to 1")
      ->check(number(0, 1))
      ->capture_default_str();
  add("--seed", flags.seed, "Of chance: the same seed, the same music")
      ->check(whole_number(0, kMostCount))
      ->capture_default_str();
  add("--save", flags.save, "Also write each as MIDI and a card to this folder")
      ->check(file_name());
}

ContinuationsFound find_continuations(const Run& run, const std::string& split,
                                      const ContinuationFlags& flags,
                                      const std::function<void(double)>& progress) {
  using Clock = std::chrono::steady_clock;
  ContinuationsFound found{
      plan_of(run, split, flags), {}, 0, run.model->config().length};
  const auto begin = Clock::now();
  const std::vector<Continuation> all =
      write_continuations(*run.model, *run.task, run.draw(), found.plan, progress);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  double tokens = 0, given = 0;
  for (const Continuation& one : all) {
    tokens += static_cast<double>(one.written.size());
    given += static_cast<double>(one.prompt);
  }
  found.plan.prompt = std::llround(given / static_cast<double>(all.size()));
  found.tokens_per_second = tokens / std::max(seconds, 1e-9);
  found.figures = judge_continuations(*run.task->music(), all);
  if (!flags.save.empty()) save(flags.save, run, found.plan, all);
  return found;
}

std::string continuations_text(const ContinuationsFound& found) {
  const ContinuationFigures& figures = found.figures;
  const ContinuationPlan& plan = found.plan;
  const std::string given =
      plan.bars > 0
          ? fmt::format("{} bars of a piece (some {} tokens)", plan.bars, plan.prompt)
          : fmt::format("{} of a piece", plan.prompt);
  return fmt::format(
             "{} continuations of {}: {} tokens from the first {}, trained at {}; "
             "{:.0f} tokens/s\nlikeness of style to the source, 0 to 1, by quarters of "
             "their time (± 95 %)\n",
             figures.count, plan.split, plan.length, given, found.trained,
             found.tokens_per_second) +
         part_text("time and pitch", figures, &StyleFigures::time_pitch) +
         part_text("onset and duration", figures, &StyleFigures::onset_duration) +
         part_text("drums", figures, &StyleFigures::onset_drum) + "notes\n" +
         notes_text("this model", figures.written_notes) +
         notes_text("the piece itself", figures.true_notes);
}

Json continuations_json(const ContinuationsFound& found, int64_t step) {
  const ContinuationPlan& plan = found.plan;
  return {{"split", plan.split},
          {"trained", found.trained},
          {"count", found.figures.count},
          {"prompt", plan.prompt},
          {"prompt_bars", plan.bars},
          {"length", plan.length},
          {"temperature", plan.sampling.temperature},
          {"top_p", plan.sampling.top_p},
          {"seed", plan.sampling.seed},
          {"step", step},
          {"tokens_per_second", found.tokens_per_second},
          {"time_pitch", part_json(found.figures, &StyleFigures::time_pitch)},
          {"onset_duration", part_json(found.figures, &StyleFigures::onset_duration)},
          {"onset_drum", part_json(found.figures, &StyleFigures::onset_drum)},
          {"written_notes", notes_json(found.figures.written_notes)},
          {"true_notes", notes_json(found.figures.true_notes)}};
}

}  // namespace lagwise::cli
