#include "lagwise/data/continuation.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace lagwise::data {
namespace {

constexpr int kBarBeats = 4;

// The tick that the first tokens reach: where their music ends.
int64_t end_of(const TokenScheme& scheme, std::span<const int32_t> ids) {
  return scheme.decode(ids).end;
}

/// Numbers of many pieces, by quarter.
class Quarters {
 public:
  void add(const std::array<double, 4>& one) { all_.push_back(one); }

  QuarterFigures figures() const {
    QuarterFigures out;
    const auto count = static_cast<double>(all_.size());
    for (size_t q = 0; q < 4; ++q) {
      for (const auto& one : all_) out.mean[q] += one[q] / count;
      double squares = 0;
      for (const auto& one : all_)
        squares += (one[q] - out.mean[q]) * (one[q] - out.mean[q]);
      out.error[q] = 1.96 * std::sqrt(squares / (count - 1) / count);
    }
    return out;
  }

 private:
  std::vector<std::array<double, 4>> all_;
};

struct StyleSums {
  Quarters time_pitch, onset_duration;

  void add(const StyleSimilarity& one) {
    time_pitch.add(one.time_pitch);
    onset_duration.add(one.onset_duration);
  }
  StyleFigures figures() const {
    return {time_pitch.figures(), onset_duration.figures()};
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

// The piece, as far as what was written reaches.
std::span<const int32_t> true_part(const Continuation& one) {
  const size_t count = static_cast<size_t>(one.prompt) + one.written.size();
  return std::span(one.piece).first(std::min(count, one.piece.size()));
}

}  // namespace

Music music_after(const TokenScheme& scheme, std::span<const int32_t> whole,
                  int64_t prompt) {
  Music music = scheme.decode(whole);
  const int64_t from = end_of(scheme, whole.first(static_cast<size_t>(prompt)));
  const int64_t bar = int64_t{kBarBeats} * music.ticks_per_beat;
  const int64_t moved = from / bar * bar;
  for (Track& track : music.tracks) {
    std::erase_if(track.notes, [&](const Note& note) { return note.start < from; });
    for (Note& note : track.notes) note.start -= moved, note.end -= moved;
  }
  // Of texts and tempos, those that still hold stand at the front.
  for (Tempo& tempo : music.tempos)
    tempo.tick = std::max<int64_t>(tempo.tick - moved, 0);
  for (Text& text : music.texts) text.tick = std::max<int64_t>(text.tick - moved, 0);
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
    written.add(style_similarity(mine, sources[i]));
    truth.add(style_similarity(original, sources[i]));
    shuffled.add(style_similarity(mine, sources[(i + 1) % all.size()]));
    add(figures.written_notes, note_statistics(mine), share);
    add(figures.true_notes, note_statistics(original), share);
  }
  figures.written = written.figures();
  figures.truth = truth.figures();
  figures.shuffled = shuffled.figures();
  return figures;
}

}  // namespace lagwise::data
