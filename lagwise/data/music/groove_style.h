#pragma once

#include <array>
#include <string>
#include <vector>

#include "lagwise/data/sources/dice.h"

namespace lagwise::data {

/// What the drums play in one bar, a letter for each sixteenth: 'x' loud, 'o' soft,
/// '.' silent.
struct DrumBar {
  std::string kick, snare, hat;
};

/// How a band plays: everything that makes two songs of one style alike.
struct GrooveStyle {
  std::string name;  ///< of the family and its number: "bossa 7"
  int beats = 4;     ///< in a bar: 4 or 3
  bool swing = false;
  int bpm = 120;
  bool minor = false, sevenths = false;

  int hat_pitch = 42;            ///< closed hat, ride, shaker
  std::array<DrumBar, 2> drums;  ///< of verse and chorus
  std::string fill;              ///< half a bar: digits 1 .. 4 are snare and toms
  int crash_every = 8;           ///< bars

  /// A letter for each sixteenth: 'r' root, 'f' fifth, 'o' octave, 't' third, 'a' the
  /// semitone below the next root, '-' hold, '.' rest.
  std::array<std::string, 2> bass;
  int bass_program = 33;

  /// 'x' a short chord, 'l' one held to the next, '.' nothing new.
  std::array<std::string, 2> comping;
  int chord_program = 0, chord_low = 55;  ///< voiced within an octave from here

  /// Degrees of the scale (0 is the tonic), one a bar, of the sections A, B and C.
  std::array<std::vector<int>, 3> progressions;
  std::vector<std::string> forms;  ///< "AABA": a letter for each section
  int section_bars = 8;
};

/// A style from the throws of the dice: a family (rock, bossa, shuffle, ..) with its
/// own drums, and then choices and small changes within it.
GrooveStyle make_groove_style(Dice dice, int number);

}  // namespace lagwise::data
