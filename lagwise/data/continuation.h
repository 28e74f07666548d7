#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lagwise/data/style_profile.h"
#include "lagwise/data/token_scheme.h"

namespace lagwise::data {

/// A piece, and how somebody went on from its beginning.
struct Continuation {
  std::vector<int32_t> piece;    ///< the source, whole
  int64_t prompt = 0;            ///< tokens of it that were given
  std::vector<int32_t> written;  ///< what came after them
};

/// The music of `whole` that starts after its first `prompt` tokens, moved to the front
/// by whole bars of four beats, so that notes keep their place in the bar.
Music music_after(const TokenScheme& scheme, std::span<const int32_t> whole,
                  int64_t prompt);

/// Mean over pieces in each quarter, and half of its 95 % confidence interval.
struct QuarterFigures {
  std::array<double, 4> mean{}, error{};
};

struct StyleFigures {
  QuarterFigures time_pitch, onset_duration;
};

/// How like their sources continuations are (data/style_profile.h), beside what tells
/// how to read it:
///
///     written   what was written, against its source
///     truth     the source's own continuation, as long in tokens as the source allows:
///               as good as a player can be expected to be
///     shuffled  what was written, against the source of the next continuation: what
///               any music of this corpus gets
struct ContinuationFigures {
  int64_t count = 0;
  StyleFigures written, truth, shuffled;
  NoteStatistics written_notes, true_notes;  ///< means
};

/// std::invalid_argument for fewer than two: there would be nothing to shuffle.
ContinuationFigures judge_continuations(const TokenScheme& scheme,
                                        std::span<const Continuation> continuations);

}  // namespace lagwise::data
