#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lagwise/core/sampler.h"
#include "lagwise/data/music/style_profile.h"
#include "lagwise/data/music/token_scheme.h"
#include "lagwise/models/model.h"
#include "lagwise/tasks/task.h"
#include "lagwise/train/confidence.h"

namespace lagwise {

/// A piece of music, and how somebody went on from its beginning.
struct Continuation {
  std::vector<int32_t> piece;    ///< the source, whole
  int64_t prompt = 0;            ///< tokens of it that were given
  std::vector<int32_t> written;  ///< what came after them
};

/// The music of `whole` that starts after its first `prompt` tokens, moved to the front
/// by whole bars of four beats, so that notes keep their place in the bar.
data::Music music_after(const data::TokenScheme& scheme, std::span<const int32_t> whole,
                        int64_t prompt);

/// Mean over those continuations that have a number in a quarter of their time, with
/// its confidence; NaN where none has.
struct QuarterFigure : Interval {
  int64_t counted = 0;  ///< continuations that had one
};
using QuarterFigures = std::array<QuarterFigure, 4>;

struct StyleFigures {
  QuarterFigures time_pitch, onset_duration;  ///< of melodic tracks
  QuarterFigures onset_drum;
};

/// How like their sources continuations are (data/music/style_profile.h), beside what tells
/// how to read it:
///
///     written   what was written, against its source
///     truth     the source's own continuation, as many tokens as it has
///     shuffled  what was written, against the source of the next continuation: what
///               any music of this corpus gets
struct ContinuationFigures {
  int64_t count = 0;
  StyleFigures written, truth, shuffled;
  data::NoteStatistics written_notes, true_notes;  ///< means
};

/// std::invalid_argument for fewer than two: there would be nothing to shuffle.
ContinuationFigures judge_continuations(const data::TokenScheme& scheme,
                                        std::span<const Continuation> continuations);

/// What to continue, and how.
struct ContinuationPlan {
  std::string split = "test";
  int64_t count = 50;
  int64_t prompt = 128;  ///< tokens of a piece that are given, or, where `bars` is not
  int64_t bars = 0;      ///<   0, its first so many bars of four beats
  int64_t length = 896;  ///< tokens to write; the end of a piece is never drawn
  Sampling sampling = {};
};

/// Lets `model` go on from the beginnings of `count` pieces, evenly spread over those
/// of the split that are at least twice as long as the prompt, all at once; again from
/// the first where they are fewer. std::invalid_argument for a task that is no music,
/// and for a split with fewer than two such pieces. Of a prompt in bars each piece has
/// its own number of tokens.
std::vector<Continuation> write_continuations(
    Model& model, const Task& task, const Draw& draw, const ContinuationPlan& plan,
    const std::function<void(double)>& progress = {});

}  // namespace lagwise
