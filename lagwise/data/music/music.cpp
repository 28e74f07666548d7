#include "lagwise/data/music/music.h"

#include <algorithm>
#include <array>
#include <bit>

#include "lagwise/data/formats/smf.h"

namespace lagwise::data {
namespace {

constexpr size_t kMostTracksOfAFile = 0xFFFF - 1;  // a file counts them in 16 bits

template <class Event>
void sort_by_tick(std::vector<Event>& events) {
  for (Event& event : events)
    event.tick = std::clamp<int64_t>(event.tick, 0, kSmfLastTick);
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.tick < b.tick; });
}

// Of two notes of one pitch that overlap, the earlier one makes room. From the last
// note to the first, so that the later note of a pair is already final.
void part_overlaps(std::vector<Note>& notes) {
  std::array<Note*, 128> next{};
  for (size_t i = notes.size(); i-- > 0;) {
    Note& note = notes[i];
    if (const Note* const later = next[static_cast<size_t>(note.pitch)]) {
      if (note.start == later->start)
        note.end = later->end;
      else if (note.end > later->start && note.end != later->end)
        note.end = later->start;
    }
    next[static_cast<size_t>(note.pitch)] = &note;
  }
}

void tidy_notes(std::vector<Note>& notes) {
  for (Note& note : notes) {
    note.start = std::max<int64_t>(note.start, 0);
    note.end = std::min(note.end, kSmfLastTick);
    note.velocity = std::clamp(note.velocity, 1, 127);
  }
  std::erase_if(notes, [](const Note& note) {
    return note.start >= note.end || note.pitch < 0 || note.pitch > 127;
  });
  std::stable_sort(notes.begin(), notes.end(),
                   [](const Note& a, const Note& b) { return a.start < b.start; });
  part_overlaps(notes);
}

bool is_data(char c) { return static_cast<uint8_t>(c) < 0x80; }

// A channel event that is no note: status A0 .. EF and its data.
bool is_channel_event(const std::string& bytes) {
  if (bytes.empty()) return false;
  const int kind = static_cast<uint8_t>(bytes[0]) >> 4;
  if (kind < 0xA || kind > 0xE) return false;
  const size_t size = kind == 0xC || kind == 0xD ? 2 : 3;
  return bytes.size() == size && std::all_of(bytes.begin() + 1, bytes.end(), is_data);
}

// System exclusive, or a meta event that has no list of its own.
bool is_other_event(const std::string& bytes) {
  if (bytes.size() > kSmfLastTick || bytes.empty()) return false;
  const auto status = static_cast<uint8_t>(bytes[0]);
  if (status == 0xF0 || status == 0xF7) return true;
  if (status != 0xFF || bytes.size() < 2 || !is_data(bytes[1])) return false;
  const int type = static_cast<uint8_t>(bytes[1]);
  return !(type >= 0x01 && type <= 0x0F) && type != 0x2F && type != 0x51 &&
         type != 0x58 && type != 0x59;
}

void tidy_track(Track& track) {
  track.channel = std::clamp(track.channel, 0, 15);
  track.program = std::clamp(track.program, 0, 127);
  tidy_notes(track.notes);
  std::erase_if(track.events,
                [](const RawEvent& event) { return !is_channel_event(event.bytes); });
  for (RawEvent& event : track.events)
    event.bytes[0] = static_cast<char>((event.bytes[0] & 0xF0) | track.channel);
  sort_by_tick(track.events);
}

void tidy_signatures(Music& music) {
  for (TimeSignature& signature : music.time_signatures) {
    signature.numerator = std::clamp(signature.numerator, 1, 255);
    const auto denominator = std::clamp(signature.denominator, 1, 128);
    signature.denominator =
        static_cast<int>(std::bit_floor(static_cast<unsigned>(denominator)));
    signature.clocks_per_click = std::clamp(signature.clocks_per_click, 0, 255);
    signature.thirty_seconds = std::clamp(signature.thirty_seconds, 0, 255);
  }
  for (KeySignature& key : music.key_signatures)
    key.sharps = std::clamp(key.sharps, -7, 7);
  sort_by_tick(music.time_signatures);
  sort_by_tick(music.key_signatures);
}

template <class Events>
int64_t last_tick(const Events& events) {
  return events.empty() ? 0 : events.back().tick;
}

}  // namespace

void tidy(Music& music) {
  music.ticks_per_beat = std::clamp(music.ticks_per_beat, 1, 0x7FFF);
  for (Tempo& tempo : music.tempos)
    tempo.us_per_beat = std::clamp<int64_t>(tempo.us_per_beat, 1, 0xFFFFFF);
  for (Text& text : music.texts) text.kind = std::clamp(text.kind, 1, 15);
  if (music.tracks.size() > kMostTracksOfAFile) music.tracks.resize(kMostTracksOfAFile);
  std::erase_if(music.other,
                [](const RawEvent& event) { return !is_other_event(event.bytes); });
  for (Track& track : music.tracks) tidy_track(track);
  tidy_signatures(music);
  sort_by_tick(music.tempos);
  sort_by_tick(music.texts);
  sort_by_tick(music.other);

  int64_t end = std::clamp<int64_t>(music.end, 0, kSmfLastTick);
  for (const Track& track : music.tracks) {
    end = std::max(end, last_tick(track.events));
    for (const Note& note : track.notes) end = std::max(end, note.end);
  }
  music.end = std::max({end, last_tick(music.tempos), last_tick(music.texts),
                        last_tick(music.time_signatures),
                        last_tick(music.key_signatures), last_tick(music.other)});
}

double seconds_at(const Music& music, int64_t tick) {
  double seconds = 0;
  Tempo now;
  const auto pass = [&](int64_t until) {
    seconds += static_cast<double>(until - now.tick) / music.ticks_per_beat *
               static_cast<double>(now.us_per_beat) * 1e-6;
  };
  for (const Tempo& tempo : music.tempos) {
    if (tempo.tick >= tick) break;
    pass(tempo.tick);
    now = tempo;
  }
  pass(tick);
  return seconds;
}

}  // namespace lagwise::data
