#include "lagwise/data/music/style_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lagwise::data {
namespace {

constexpr int kIntervals = 41, kFarthest = 20, kLags = 24, kBarBeats = 4, kPerBeat = 6;
constexpr int kDurations = 12, kLongestBeats = 2, kMidiPitches = 128;

// The sixth of a beat in which `beats` falls. The edges are numpy's, i * (4 / 24), and
// like numpy's they are compared as they are rounded: the reference counts so.
int sixth_of(double beats) {
  constexpr double kStep = 4.0 / 24;
  int bin = static_cast<int>(beats * kPerBeat);
  while (bin * kStep > beats) --bin;
  while ((bin + 1) * kStep <= beats) ++bin;
  return bin;
}

// The same of whole ticks, exactly.
int exact_sixth(int64_t ticks, int ticks_per_beat) {
  return static_cast<int>(ticks * kPerBeat / ticks_per_beat);
}

std::vector<Note> by_start(std::span<const Note> notes) {
  std::vector<Note> sorted(notes.begin(), notes.end());
  std::ranges::stable_sort(sorted, {}, &Note::start);
  return sorted;
}

double& bin_at(StyleProfile& profile, int row, int columns, int column) {
  return profile[size_t(row) * size_t(columns) + size_t(column)];
}

void count_pair(StyleProfile& profile, const Note& from, const Note& to, int unit) {
  const int interval = to.pitch - from.pitch;
  if (std::abs(interval) > kFarthest) return;
  const double lag =
      static_cast<double>(to.start) / unit - static_cast<double>(from.start) / unit;
  ++bin_at(profile, interval + kFarthest, kLags,
           std::clamp(sixth_of(lag), 0, kLags - 1));
}

int onset_bin(const Note& note, int unit) {
  return exact_sixth(note.start % (int64_t{kBarBeats} * unit), unit);
}

// The notes that start within [from, to).
std::vector<Note> part_of(const Track& track, int64_t from, int64_t to) {
  std::vector<Note> notes;
  for (const Note& note : track.notes)
    if (note.start >= from && note.start < to) notes.push_back(note);
  return notes;
}

// The cosine of two profiles; NaN where one of them is empty.
double likeness(const StyleProfile& a, const StyleProfile& b) {
  const auto empty = [](const StyleProfile& profile) {
    return std::ranges::all_of(profile, [](double x) { return x == 0; });
  };
  if (empty(a) || empty(b)) return std::numeric_limits<double>::quiet_NaN();
  return cosine_similarity(a, b);
}

// By quarters, the mean of those numbers that are some.
class QuarterMeans {
 public:
  void add(size_t quarter, double x) {
    if (std::isnan(x)) return;
    sum_[quarter] += x;
    ++count_[quarter];
  }
  std::array<double, 4> means() const {
    std::array<double, 4> out;
    for (size_t q = 0; q < 4; ++q) out[q] = sum_[q] / count_[q];  // 0 / 0: NaN
    return out;
  }

 private:
  std::array<double, 4> sum_{}, count_{};
};

const Track* track_named(const Music& music, const std::string& name) {
  for (const Track& track : music.tracks)
    if (track.name == name) return &track;
  return nullptr;
}

}  // namespace

StyleProfile time_pitch_profile(std::span<const Note> notes, int ticks_per_beat) {
  StyleProfile profile(kIntervals * kLags);
  const std::vector<Note> sorted = by_start(notes);
  for (size_t i = 0; i < sorted.size(); ++i)
    for (size_t j = i + 1; j < sorted.size(); ++j) {
      const int64_t lag = sorted[j].start - sorted[i].start;
      if (lag >= int64_t{kBarBeats} * ticks_per_beat) break;
      count_pair(profile, sorted[i], sorted[j], ticks_per_beat);
      if (lag == 0) count_pair(profile, sorted[j], sorted[i], ticks_per_beat);
    }
  return profile;
}

StyleProfile onset_duration_profile(std::span<const Note> notes, int ticks_per_beat) {
  StyleProfile profile(kLags * kDurations);
  for (const Note& note : notes) {
    const int64_t length = note.end - note.start;
    if (length > int64_t{kLongestBeats} * ticks_per_beat) continue;
    const int bin = std::min(exact_sixth(length, ticks_per_beat), kDurations - 1);
    ++bin_at(profile, onset_bin(note, ticks_per_beat), kDurations, bin);
  }
  return profile;
}

StyleProfile onset_pitch_profile(std::span<const Note> notes, int ticks_per_beat) {
  StyleProfile profile(kLags * kMidiPitches);
  for (const Note& note : notes)
    ++bin_at(profile, onset_bin(note, ticks_per_beat), kMidiPitches, note.pitch);
  return profile;
}

double cosine_similarity(const StyleProfile& a, const StyleProfile& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

StyleSimilarity style_similarity(const Music& continuation, const Music& source) {
  QuarterMeans time_pitch, onset_duration, onset_drum;
  const int unit = continuation.ticks_per_beat, source_unit = source.ticks_per_beat;
  for (const Track& whole : source.tracks) {
    const Track* const track = track_named(continuation, whole.name);
    if (!track) continue;
    const auto compare = [&](auto profile, QuarterMeans& means) {
      const StyleProfile wanted = profile(whole.notes, source_unit);
      for (int64_t quarter = 0; quarter < 4; ++quarter) {
        const std::vector<Note> part = part_of(*track, continuation.end * quarter / 4,
                                               continuation.end * (quarter + 1) / 4);
        means.add(static_cast<size_t>(quarter), likeness(profile(part, unit), wanted));
      }
    };
    if (whole.drums()) {
      compare(onset_pitch_profile, onset_drum);
    } else {
      compare(time_pitch_profile, time_pitch);
      compare(onset_duration_profile, onset_duration);
    }
  }
  return {time_pitch.means(), onset_duration.means(), onset_drum.means()};
}

NoteStatistics note_statistics(const Music& music) {
  double notes = 0, pitched = 0, pitch = 0, square = 0, duration = 0;
  for (const Track& track : music.tracks)
    for (const Note& note : track.notes) {
      ++notes;
      duration += static_cast<double>(note.end - note.start);
      if (track.drums()) continue;
      ++pitched;
      pitch += note.pitch;
      square += static_cast<double>(note.pitch) * note.pitch;
    }
  NoteStatistics statistics;
  const double beats = static_cast<double>(music.end) / music.ticks_per_beat;
  if (notes == 0 || beats == 0) return statistics;
  statistics.notes_per_beat = notes / beats;
  statistics.mean_duration = duration / notes / music.ticks_per_beat;
  if (pitched == 0) return statistics;
  statistics.mean_pitch = pitch / pitched;
  const double variance =
      square / pitched - statistics.mean_pitch * statistics.mean_pitch;
  statistics.pitch_spread = std::sqrt(std::max(variance, 0.0));
  return statistics;
}

}  // namespace lagwise::data
