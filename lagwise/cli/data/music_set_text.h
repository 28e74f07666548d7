#pragma once

#include <string>

#include "lagwise/data/music/music_corpus.h"

namespace lagwise::cli {

/// What a set holds, a line for each split, and what to do with it next.
std::string corpus_text(const std::string& folder, const data::MusicCorpus& corpus);

/// What reading a folder met with: damaged and silent files by name (at most twenty of
/// each), and what the tokens could not say.
std::string report_text(const data::MidiReport& report);

}  // namespace lagwise::cli
