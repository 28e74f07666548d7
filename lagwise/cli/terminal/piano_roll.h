#pragma once

#include <cstdint>
#include <string>

#include "lagwise/data/music/music.h"

namespace lagwise::cli {

struct PianoRoll {
  int columns = 96;     ///< of the terminal that notes may take
  int systems = 4;      ///< rolls one below the other, at most: a longer piece is
                        ///<   squeezed
  int64_t prompt = 0;   ///< a line stands before this tick, if positive
  bool colour = false;  ///< by track; else blocks alone
};

/// Music in characters: time runs to the right, two pitches share a line of half
/// blocks, drums have lines of their own below. Each column is a sixteenth, or more
/// where the piece is long. Empty for music without notes.
std::string piano_roll(const data::Music& music, const PianoRoll& how);

}  // namespace lagwise::cli
