#pragma once

#include <array>
#include <span>
#include <vector>

#include "lagwise/data/music/music.h"

namespace lagwise::data {

/// How a track goes about its notes, as a histogram; two of them are compared by the
/// cosine of the angle between them. (Cifka, Simsekli and Richard, "Groove2Groove",
/// 2020; used by Liutkus et al., 2021, arXiv:2105.08399.)
using StyleProfile = std::vector<double>;

/// Over ordered pairs of notes less than 4 beats apart, 41 x 24 bins:
///
///     (pitch_j - pitch_i in -20 .. 20,  onset_j - onset_i in [0, 4) beats by sixths)
///
/// Cost  notes times the notes within four beats.
StyleProfile time_pitch_profile(std::span<const Note> notes, int ticks_per_beat);

/// Over notes of up to 2 beats, 24 x 12 bins:
///
///     (onset within a bar of 4 beats, by sixths,  duration in [0, 2] beats by sixths)
///
/// The published figures counted ticks as beats here and so saw only the first notes
/// of each bar; this is what was meant.
StyleProfile onset_duration_profile(std::span<const Note> notes, int ticks_per_beat);

/// For drums, whose durations say nothing: 24 x 128 bins of onset and pitch.
StyleProfile onset_pitch_profile(std::span<const Note> notes, int ticks_per_beat);

/// a.b / (|a| |b|); 0 where either is empty.
double cosine_similarity(const StyleProfile& a, const StyleProfile& b);

/// How like its source a continuation is, in each quarter of its time: each track's
/// profile against the same track (by name) of the whole source. As the authors of SPE
/// have it,
///
///     time_pitch, onset_duration   mean over melodic tracks
///     onset_drum                   mean over drums, of onset and pitch
///
/// A track counts in a quarter where its profile has something in it on both sides;
/// NaN where none does, as in silence.
struct StyleSimilarity {
  std::array<double, 4> time_pitch{}, onset_duration{}, onset_drum{};
};
StyleSimilarity style_similarity(const Music& continuation, const Music& source);

/// What else tells styles apart at a glance.
struct NoteStatistics {
  double notes_per_beat = 0;
  double mean_pitch = 0, pitch_spread = 0;  ///< standard deviation; drums left out
  double mean_duration = 0;                 ///< in beats
};
NoteStatistics note_statistics(const Music& music);

}  // namespace lagwise::data
