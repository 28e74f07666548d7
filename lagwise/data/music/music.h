#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lagwise::data {

/// Music as notes on a line of ticks: what a MIDI file says, once its bytes are
/// understood. Times are ticks from the start, of which a beat (a quarter note) has
/// `ticks_per_beat`.
struct Note {
  int64_t start = 0, end = 0;  ///< start < end
  int pitch = 60;              ///< 0 .. 127; 60 is the C in the middle
  int velocity = 64;           ///< 1 .. 127
  bool operator==(const Note&) const = default;
};

/// An event kept as its MIDI bytes: status (or FF and type) first, no length.
struct RawEvent {
  int64_t tick = 0;
  std::string bytes;
  bool operator==(const RawEvent&) const = default;
};

constexpr int kDrumChannel = 9;  ///< "channel 10" to musicians

/// What one player plays: one channel of one track of the file.
struct Track {
  std::string name;
  int channel = 0;               ///< 0 .. 15
  int program = 0;               ///< the instrument of General MIDI, 0 .. 127
  std::vector<Note> notes;       ///< sorted by start
  std::vector<RawEvent> events;  ///< controllers, bends, later programs; sorted by tick
  bool drums() const { return channel == kDrumChannel; }
  bool operator==(const Track&) const = default;
};

struct Tempo {
  int64_t tick = 0;
  int64_t us_per_beat =
      500000;  ///< 1 .. 2^24 - 1; the tempo in beats per minute is 6e7 / this
  bool operator==(const Tempo&) const = default;
};

struct TimeSignature {
  int64_t tick = 0;
  int numerator = 4;
  int denominator = 4;        ///< a power of two up to 128
  int clocks_per_click = 24;  ///< of the metronome, 24 to a beat
  int thirty_seconds = 8;     ///< in a beat
  bool operator==(const TimeSignature&) const = default;
};

struct KeySignature {
  int64_t tick = 0;
  int sharps = 0;  ///< -7 .. 7, flats negative
  bool minor = false;
  bool operator==(const KeySignature&) const = default;
};

/// Words in the music. Their encoding is the writer's secret: bytes are kept.
struct Text {
  enum Kind { kText = 1, kCopyright, kTrackName, kInstrument, kLyric, kMarker, kCue };
  int64_t tick = 0;
  int kind = kText;  ///< 1 .. 15
  std::string text;
  bool operator==(const Text&) const = default;
};

struct Music {
  int ticks_per_beat = 480;  ///< 1 .. 32767
  std::vector<Track> tracks;
  std::vector<Tempo>
      tempos;  ///< all lists sorted by tick; before the first: 120 a minute
  std::vector<TimeSignature> time_signatures;  ///< before the first: 4/4
  std::vector<KeySignature> key_signatures;
  std::vector<Text> texts;
  std::vector<RawEvent> other;  ///< system exclusive and the remaining meta events
  int64_t end = 0;              ///< the last tick anything happens at
  bool operator==(const Music&) const = default;
};

/// Puts every list in its order and `end` where it belongs, keeps numbers in their
/// ranges, and removes notes a MIDI file cannot say: those without length, and the
/// overlap of two notes of one pitch in one track, unless they end together (the
/// first note-off would end both).
void tidy(Music& music);

/// Seconds from the start to a tick, by the tempos.
double seconds_at(const Music& music, int64_t tick);

}  // namespace lagwise::data
