#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lagwise/data/music/music.h"
#include "lagwise/data/music/token_scheme.h"

namespace lagwise::cli {

/// Music a model wrote: a prompt and what came after it.
struct MusicSample {
  std::vector<int64_t> prompt, written;
  /// The file the prompt is from. Its tempo and instruments are taken over where the
  /// tokens do not tell them; nullptr: none.
  const data::Music* like = nullptr;
};

/// Its music, prompt and all, and the tick at which the prompt ends.
struct SampleMusic {
  data::Music music;
  int64_t prompt_end = 0;
};
SampleMusic music_of(const data::TokenScheme& scheme, const MusicSample& sample);

/// Where its files are; empty where there is none.
struct MusicFiles {
  std::string midi, tokens, wav;
};

/// Writes PATH.mid (with a marker where the prompt ends), PATH.tokens (a word a line)
/// and, with fluidsynth and a soundfont, PATH.wav.
MusicFiles write_music(const std::string& path, const data::TokenScheme& scheme,
                       const MusicSample& sample, bool wav = true);

/// What a page needs to draw and play it, with times in ticks:
///
///     {"ticks_per_beat", "us_per_beat", "end", "prompt_end", "trained_end", "tracks":
///      [{"name", "channel", "program", "notes": [[start, end, pitch, velocity], ..]}]}
///
/// `trained_end` is the tick that the first `trained` tokens reach.
nlohmann::ordered_json music_json(const data::TokenScheme& scheme,
                                  const MusicSample& sample, int64_t trained);

/// The piano roll for the terminal: in colour where stdout is one and NO_COLOR is not
/// set (https://no-color.org).
std::string shown_music(const data::TokenScheme& scheme, const MusicSample& sample);

}  // namespace lagwise::cli
