#pragma once

#include <string>

namespace lagwise::cli {

/// The soundfont to play with: $LAGWISE_SOUNDFONT, else the first .sf2 or .sf3 in the
/// folders where Linux systems keep them. Empty: none.
std::string find_soundfont();

/// Lets the program fluidsynth, if it is installed and there is a soundfont, play a
/// MIDI file into a WAV file. Returns whether it did; it says nothing.
bool render_wav(const std::string& midi, const std::string& wav);

}  // namespace lagwise::cli
