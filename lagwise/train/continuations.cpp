#include "lagwise/train/continuations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "lagwise/data/music/tokens_reach.h"
#include "lagwise/train/generation.h"

namespace lagwise {
namespace {

using data::Music;
using data::Note;
using data::NoteStatistics;
using data::StyleSimilarity;
using data::TokenScheme;
using data::Track;

constexpr int64_t kBarBeats = 4;

/// Numbers of many continuations, by quarter; those that are none are left out.
class Quarters {
 public:
  void add(const std::array<double, 4>& one) {
    for (size_t q = 0; q < 4; ++q)
      if (!std::isnan(one[q])) numbers_[q].push_back(one[q]);
  }
  QuarterFigures figures() const {
    QuarterFigures out;
    for (size_t q = 0; q < 4; ++q) {
      const std::vector<double> ones(numbers_[q].size(), 1.0);
      out[q] = {mean_of_windows(numbers_[q], ones), std::ssize(numbers_[q])};
    }
    return out;
  }

 private:
  std::array<std::vector<double>, 4> numbers_;
};

struct StyleSums {
  Quarters time_pitch, onset_duration, onset_drum;

  void add(const StyleSimilarity& one) {
    time_pitch.add(one.time_pitch);
    onset_duration.add(one.onset_duration);
    onset_drum.add(one.onset_drum);
  }
  StyleFigures figures() const {
    return {time_pitch.figures(), onset_duration.figures(), onset_drum.figures()};
  }
};

void add(NoteStatistics& sum, const NoteStatistics& one, double share) {
  sum.notes_per_beat += share * one.notes_per_beat;
  sum.mean_pitch += share * one.mean_pitch;
  sum.pitch_spread += share * one.pitch_spread;
  sum.mean_duration += share * one.mean_duration;
}

std::vector<int32_t> whole_of(const Continuation& one) {
  std::vector<int32_t> ids(one.piece.begin(), one.piece.begin() + one.prompt);
  ids.insert(ids.end(), one.written.begin(), one.written.end());
  return ids;
}

/// The piece, as far as what was written reaches.
std::span<const int32_t> true_part(const Continuation& one) {
  const size_t count = static_cast<size_t>(one.prompt) + one.written.size();
  return std::span(one.piece).first(std::min(count, one.piece.size()));
}

/// The pieces of a split: its stream, cut after each end.
std::vector<std::vector<int32_t>> pieces_of(const Task& task,
                                            const std::string& split) {
  const int32_t end = task.music()->end();
  std::vector<std::vector<int32_t>> pieces(1);
  for (const int64_t token :
       task.stream(split, 0, std::numeric_limits<int64_t>::max() / 2)) {
    pieces.back().push_back(static_cast<int32_t>(token));
    if (token == end) pieces.emplace_back();
  }
  return pieces;
}

/// How many of its tokens are given.
int64_t given_of(const std::vector<int32_t>& piece, const Task& task,
                 const ContinuationPlan& plan) {
  return plan.bars > 0 ? task.music()->first_bars(piece, plan.bars) : plan.prompt;
}

/// Those to be continued.
std::vector<Continuation> chosen(const Task& task, const ContinuationPlan& plan) {
  std::vector<Continuation> pieces;
  for (std::vector<int32_t>& piece : pieces_of(task, plan.split)) {
    const int64_t given = given_of(piece, task, plan);
    if (given > 0 && std::ssize(piece) >= 2 * given)
      pieces.push_back({std::move(piece), given, {}});
  }
  if (pieces.size() < 2)
    throw std::invalid_argument(
        "continuations: expected at least 2 pieces of twice the prompt (" +
        (plan.bars > 0 ? std::to_string(plan.bars) + " bars"
                       : std::to_string(2 * plan.prompt) + " tokens") +
        ") in the split " + plan.split + ", got " + std::to_string(pieces.size()) +
        "; another split, a shorter prompt or more music will do");
  const auto many = static_cast<int64_t>(pieces.size());
  std::vector<Continuation> all;
  for (int64_t i = 0; i < plan.count; ++i)
    all.push_back(pieces[static_cast<size_t>(plan.count < many ? i * many / plan.count
                                                               : i % many)]);
  return all;
}

}  // namespace

Music music_after(const TokenScheme& scheme, std::span<const int32_t> whole,
                  int64_t prompt) {
  Music music = scheme.decode(whole);
  const int64_t from =
      data::tokens_reach(scheme, whole.first(static_cast<size_t>(prompt)));
  const int64_t bar = kBarBeats * music.ticks_per_beat;
  const int64_t moved = from / bar * bar;
  for (Track& track : music.tracks) {
    std::erase_if(track.notes, [&](const Note& note) { return note.start < from; });
    for (Note& note : track.notes) note.start -= moved, note.end -= moved;
  }
  music.tempos.clear();  // of no matter to what is counted here
  music.texts.clear();
  music.end = std::max<int64_t>(music.end - moved, 0);
  return music;
}

ContinuationFigures judge_continuations(const TokenScheme& scheme,
                                        std::span<const Continuation> all) {
  if (all.size() < 2)
    throw std::invalid_argument("expected at least 2 continuations, got " +
                                std::to_string(all.size()));
  std::vector<Music> sources;
  for (const Continuation& one : all) sources.push_back(scheme.decode(one.piece));
  StyleSums written, truth, shuffled;
  ContinuationFigures figures;
  figures.count = static_cast<int64_t>(all.size());
  const double share = 1.0 / static_cast<double>(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const Music mine = music_after(scheme, whole_of(all[i]), all[i].prompt);
    const Music original = music_after(scheme, true_part(all[i]), all[i].prompt);
    written.add(data::style_similarity(mine, sources[i]));
    truth.add(data::style_similarity(original, sources[i]));
    shuffled.add(data::style_similarity(mine, sources[(i + 1) % all.size()]));
    add(figures.written_notes, data::note_statistics(mine), share);
    add(figures.true_notes, data::note_statistics(original), share);
  }
  figures.written = written.figures();
  figures.truth = truth.figures();
  figures.shuffled = shuffled.figures();
  return figures;
}

std::vector<Continuation> write_continuations(
    Model& model, const Task& task, const Draw& draw, const ContinuationPlan& plan,
    const std::function<void(double)>& progress) {
  if (!task.music())
    throw std::invalid_argument(
        "--continuations: expected a run of the task music, this is one of another "
        "task");
  if (plan.count < 2 || (plan.prompt < 1 && plan.bars < 1) || plan.length < 1)
    throw std::invalid_argument(
        "expected at least 2 continuations, of 1 token or more, from 1 token or more");
  std::vector<Continuation> all = chosen(task, plan);
  Writing writing;
  writing.length = plan.length;
  writing.sampling = plan.sampling;
  writing.never = task.music()->end();
  for (const Continuation& one : all)
    writing.prompts.emplace_back(one.piece.begin(), one.piece.begin() + one.prompt);
  int64_t steps = 0;
  const Written written =
      write_on(model, &task, draw, writing, [&](const std::vector<int64_t>&) {
        if (progress)
          progress(static_cast<double>(++steps) / static_cast<double>(plan.length));
        return true;
      });
  for (size_t i = 0; i < all.size(); ++i)
    all[i].written.assign(written.tokens[i].begin(), written.tokens[i].end());
  return all;
}

}  // namespace lagwise
