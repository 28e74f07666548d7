#pragma once

#include <cstdint>
#include <string>

#include "lagwise/data/music/groove_style.h"
#include "lagwise/data/music/music.h"

namespace lagwise::data {

/// A corpus that needs no download: accompaniments for drums, bass and chords.
///
/// Each of `styles` bands has its tempo, swing, drum, bass and chord patterns, fills,
/// progressions and instruments (data/music/groove_style.h). Song i is played by band
/// i mod styles, in a key, a tempo and a form of its own: sections A, B and C of 4 or
/// 8 bars, of which A comes back after others, with the same chords and patterns. So to
/// go on well one must remember the style, and the sections already heard, from far
/// back.
///
/// All times lie on a twelfth of a beat, so the token scheme `groove` keeps each note
/// exactly. Song i is a function of (seed, styles, i) alone, to the bit, on any
/// machine.
class Grooves {
 public:
  /// std::invalid_argument for other than 1 to 4096 styles.
  explicit Grooves(int styles = 24, uint64_t seed = 1);

  int styles() const { return styles_; }
  int style_of(int64_t song) const { return static_cast<int>(song % styles_); }
  GrooveStyle style(int number) const;

  /// Tracks "drums", "bass" and "chords"; markers name style and sections.
  Music song(int64_t index) const;

 private:
  int styles_;
  uint64_t seed_;
};

}  // namespace lagwise::data
