#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lagwise/data/music.h"
#include "lagwise/data/token_scheme.h"

namespace lagwise::cli {

/// Music a model wrote: a prompt and what came after it.
struct MusicSample {
  std::vector<int64_t> prompt, written;
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

/// The piano roll for the terminal: in colour where stdout is one and NO_COLOR is not
/// set (https://no-color.org).
std::string shown_music(const data::TokenScheme& scheme, const MusicSample& sample);

}  // namespace lagwise::cli
