#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lagwise/data/sets/examples.h"

namespace lagwise::data {

/// The words of the task harmonise:
///
///     0        begin, before the first note that is written
///     1        a rest
///     2, 3     the soprano sings a new note, holds the old one
///     4 .. 19  the sixteenth of the bar, counted from the chorale's first
///     20 ..    the pitches 0 .. 127 of MIDI
constexpr int32_t kChoraleBegin = 0, kChoraleRest = 1, kChoraleNew = 2,
                  kChoraleHeld = 3, kChoralePlace = 4, kChoralePlaces = 16,
                  kChoralePitch = 20, kChoraleWords = 148;

std::vector<std::string> chorale_words();  ///< "C4" for pitch 60

/// The chorales of Jsb16thSeparated.json, or of a folder that holds it, by its splits.
/// `first`: the soprano, a pitch or rest a sixteenth; `second`: alto, tenor, bass of
/// each sixteenth. DataError names what is wrong.
void read_chorale_examples(const std::string& path, const VisitExample& visit);

/// What a model hears of a soprano from sixteenth `begin` on, three words a sixteenth:
///
///     pitch | new or held | place in the bar
///
/// three, because the model writes three voices a sixteenth: row i of what it hears and
/// row i of what it writes then stand at the same time, and a lag between them means
/// the same everywhere. Pitches are moved by `semitones`.
std::vector<int64_t> heard_soprano(std::span<const int64_t> soprano, int64_t begin,
                                   int64_t steps, int semitones = 0);

/// "C5:4 D5 -:2" as a soprano: names of notes, or - for a rest, with a duration in
/// sixteenths (4 if none is given). std::invalid_argument names what is no note.
std::vector<int64_t> soprano_of_text(std::string_view text);

/// Three voices a sixteenth as text: a line for each chord, "E4 C4 C3 :4".
std::string chords_text(std::span<const int64_t> tokens);

}  // namespace lagwise::data
