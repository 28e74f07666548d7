#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/data/formats/smf.h"

namespace lagwise::data {
namespace {

void put_big_endian(std::string& out, uint32_t value, int bytes) {
  for (int i = bytes; i-- > 0;) out.push_back(static_cast<char>(value >> 8 * i & 0xFF));
}

// Groups of seven bits, highest first.
void put_length(std::string& out, int64_t value) {
  for (int shift = 21; shift > 0; shift -= 7)
    if (value >> shift != 0)
      out.push_back(static_cast<char>((value >> shift & 0x7F) | 0x80));
  out.push_back(static_cast<char>(value & 0x7F));
}

std::string bytes_from(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes.push_back(static_cast<char>(value));
  return bytes;
}

/// Gathers the events of one track, then writes them in order.
class ChunkWriter {
 public:
  /// At one tick, lower ranks come first, then what was added first.
  void add(int64_t tick, int rank, std::string bytes) {
    events_.push_back({tick, rank, std::move(bytes)});
  }
  void add_meta(int64_t tick, int rank, int type, std::string_view data) {
    add(tick, rank, bytes_from({0xFF, type}) + std::string(data));
  }

  void write(std::string& out) {
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event& a, const Event& b) {
                       return std::pair(a.tick, a.rank) < std::pair(b.tick, b.rank);
                     });
    std::string chunk;
    int64_t now = 0;
    for (const Event& event : events_) {
      put_length(chunk, event.tick - std::exchange(now, event.tick));
      put_event(chunk, event.bytes);
    }
    out += "MTrk";
    put_big_endian(out, static_cast<uint32_t>(chunk.size()), 4);
    out += chunk;
  }

 private:
  struct Event {
    int64_t tick;
    int rank;
    std::string bytes;
  };

  void put_event(std::string& chunk, const std::string& bytes) {
    const auto status = static_cast<uint8_t>(bytes[0]);
    if (status < 0xF0) {  // a channel event: the same status need not be said again
      chunk.append(bytes, std::exchange(running_, status) == status ? 1 : 0);
      return;
    }
    running_ = 0;
    const size_t named = status == 0xFF ? 2 : 1;
    chunk.append(bytes, 0, named);
    put_length(chunk, static_cast<int64_t>(bytes.size() - named));
    chunk.append(bytes, named);
  }

  std::vector<Event> events_;
  int running_ = 0;
};

void write_conductor(const Music& music, std::string& out) {
  ChunkWriter chunk;
  for (const TimeSignature& s : music.time_signatures)
    chunk.add_meta(
        s.tick, 0, 0x58,
        bytes_from({s.numerator, std::countr_zero(static_cast<unsigned>(s.denominator)),
                    s.clocks_per_click, s.thirty_seconds}));
  for (const KeySignature& key : music.key_signatures)
    chunk.add_meta(key.tick, 1, 0x59, bytes_from({key.sharps, key.minor}));
  for (const Tempo& tempo : music.tempos) {
    std::string us;
    put_big_endian(us, static_cast<uint32_t>(tempo.us_per_beat), 3);
    chunk.add_meta(tempo.tick, 2, 0x51, us);
  }
  for (const Text& text : music.texts)
    chunk.add_meta(text.tick, 3, text.kind, text.text);
  for (const RawEvent& event : music.other) chunk.add(event.tick, 4, event.bytes);
  chunk.add_meta(music.end, 5, 0x2F, "");
  chunk.write(out);
}

void write_track(const Track& track, std::string& out) {
  ChunkWriter chunk;
  int64_t end = 0;
  if (!track.name.empty()) chunk.add_meta(0, 0, Text::kTrackName, track.name);
  chunk.add(0, 0, bytes_from({0xC0 | track.channel, track.program}));
  std::set<std::pair<int64_t, int>> ended;  // one note-off ends all that end there
  for (const Note& note : track.notes) {
    if (ended.emplace(note.end, note.pitch).second)
      chunk.add(note.end, 1, bytes_from({0x90 | track.channel, note.pitch, 0}));
    chunk.add(note.start, 3,
              bytes_from({0x90 | track.channel, note.pitch, note.velocity}));
    end = std::max(end, note.end);
  }
  for (const RawEvent& event : track.events) {
    chunk.add(event.tick, 2, event.bytes);
    end = std::max(end, event.tick);
  }
  chunk.add_meta(end, 4, 0x2F, "");
  chunk.write(out);
}

}  // namespace

std::string smf_bytes(Music music) {
  tidy(music);
  std::string out = "MThd";
  put_big_endian(out, 6, 4);
  put_big_endian(out, 1, 2);
  put_big_endian(out, static_cast<uint32_t>(music.tracks.size() + 1), 2);
  put_big_endian(out, static_cast<uint32_t>(music.ticks_per_beat), 2);
  write_conductor(music, out);
  for (const Track& track : music.tracks) write_track(track, out);
  return out;
}

void write_smf(const std::string& file, const Music& music) {
  replace_file(file, smf_bytes(music));
}

}  // namespace lagwise::data
