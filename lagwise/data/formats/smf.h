#pragma once

#include <string>

#include "lagwise/data/formats/bytes.h"
#include "lagwise/data/music/music.h"

namespace lagwise::data {

/// What a file held that music cannot.
struct SmfRepairs {
  int64_t unpaired_ons = 0;   ///< a note that never ends: left out
  int64_t unpaired_offs = 0;  ///< an end without a note: passed over
  int64_t empty_notes = 0;    ///< a note that ends where it begins: left out
};

/// A Standard MIDI File of format 0 or 1 ("Standard MIDI Files 1.0", MIDI
/// Manufacturers Association, 1988).
///
/// Notes      A note-off (or a note-on of velocity 0) ends every open note of its
///            pitch and channel that began earlier.
/// Division   A SMPTE division counts ticks of real time. It becomes beats of one
///            second (1.001 for 29.97 frames), and the tempos, without meaning
///            there, go.
/// Leniency   Running status lives on through meta events, as many programs write
///            it; unknown chunks are passed over. All else that is wrong is a
///            DataError with its offset.
/// Memory     in proportion to the file, which has at most 16 MB; times below 2^28.
Music read_smf(const std::string& file, SmfRepairs* repairs = nullptr);
Music parse_smf(const std::string& name, Bytes bytes, SmfRepairs* repairs = nullptr);

/// The bytes of a format 1 file: a first track with tempos, signatures, texts and the
/// other events without a channel, then one for each Track. The music is made tidy
/// first; for tidy music, parse_smf(smf_bytes(music)) == music.
std::string smf_bytes(Music music);

/// Writes it, whole or not at all.
void write_smf(const std::string& file, const Music& music);

/// The latest tick a file may reach, so that every time between two events can be
/// written.
constexpr int64_t kSmfLastTick = (int64_t{1} << 28) - 1;

}  // namespace lagwise::data
