#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "lagwise/data/formats/byte_cursor.h"
#include "lagwise/data/formats/mapped_file.h"
#include "lagwise/data/formats/smf.h"

namespace lagwise::data {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;
constexpr int kMaxTracks = 1024;
constexpr int kSysex = 0xF0, kSysexMore = 0xF7, kMeta = 0xFF;

// A number in groups of seven bits, highest first; the top bit says "more follow".
uint32_t read_length(ByteCursor& cursor, const char* what) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const uint8_t byte = cursor.byte(what);
    value = value << 7 | (byte & 0x7Fu);
    if (byte < 0x80) return value;
  }
  cursor.fail(std::string(what) + " of at most four bytes");
}

/// Reads one MTrk chunk into the music: a Track for each channel it uses.
class TrackReader {
 public:
  TrackReader(ByteCursor cursor, Music& music, SmfRepairs& repairs)
      : cursor_(std::move(cursor)), music_(music), repairs_(repairs) {}

  void read() {
    while (!ended_) {
      const size_t start = cursor_.offset();
      tick_ += read_length(cursor_, "time between events");
      if (tick_ > kSmfLastTick) cursor_.fail_at(start, "a time below 2^28 ticks");
      event();
    }
    if (!cursor_.done())
      cursor_.fail("the end of the chunk after the end of the track");
    music_.end = std::max(music_.end, tick_);
    hand_over();
  }

 private:
  using Open = std::vector<size_t>;  // places in Track::notes

  void event() {
    const size_t start = cursor_.offset();
    int status = cursor_.peek("event");
    if (status >= 0x80)
      cursor_.byte("event");
    else if (running_ != 0)
      status = running_;
    else
      cursor_.fail("a status byte of 128 or more: no event came before");
    if (status == kMeta) return meta();
    if (status == kSysex || status == kSysexMore) return sysex(status);
    if (status >= kSysex) cursor_.fail_at(start, "a status byte a file may hold");
    running_ = status;
    channel_event(status);
  }

  void sysex(int status) {
    running_ = 0;
    const uint32_t length = read_length(cursor_, "length of a system exclusive event");
    keep(status, cursor_.take(length, "system exclusive event"));
  }

  void keep(int status, Bytes bytes) {
    music_.other.push_back(
        {tick_, static_cast<char>(status) + std::string(text_of(bytes))});
  }

  void meta() {
    const size_t start = cursor_.offset();
    const int type = cursor_.byte("type of a meta event");
    if (type >= 0x80) cursor_.fail_at(start, "a type of meta event below 128");
    const uint32_t length = read_length(cursor_, "length of a meta event");
    const size_t at = cursor_.offset();
    const Bytes bytes = cursor_.take(length, "meta event");
    const auto require = [&](bool holds, const char* expected) {
      if (!holds) cursor_.fail_at(at, expected);
    };
    if (type == 0x2F) {
      require(bytes.empty(), "no bytes in the end of a track");
      ended_ = true;
    } else if (type == 0x51) {
      require(bytes.size() == 3, "a tempo of three bytes");
      const int64_t us = bytes[0] << 16 | bytes[1] << 8 | bytes[2];
      require(us > 0, "a tempo above zero");
      music_.tempos.push_back({tick_, us});
    } else if (type == 0x58) {
      require(bytes.size() == 4, "a time signature of four bytes");
      require(bytes[0] > 0 && bytes[1] <= 7, "a time signature of 1/128 or more");
      music_.time_signatures.push_back(
          {tick_, bytes[0], 1 << bytes[1], bytes[2], bytes[3]});
    } else if (type == 0x59) {
      require(bytes.size() == 2, "a key signature of two bytes");
      const int sharps = bytes[0] < 128 ? bytes[0] : bytes[0] - 256;
      require(std::abs(sharps) <= 7 && bytes[1] <= 1,
              "a key of up to seven accidentals");
      music_.key_signatures.push_back({tick_, sharps, bytes[1] == 1});
    } else if (type == Text::kTrackName && !name_) {
      name_ = Text{tick_, type, std::string(text_of(bytes))};
      name_place_ = music_.texts.size();
    } else if (type >= 0x01 && type <= 0x0F) {
      music_.texts.push_back({tick_, type, std::string(text_of(bytes))});
    } else {
      keep(kMeta, Bytes());
      music_.other.back().bytes += static_cast<char>(type);
      music_.other.back().bytes += text_of(bytes);
    }
  }

  int data_byte() {
    const size_t start = cursor_.offset();
    const int value = cursor_.byte("event");
    if (value >= 0x80) cursor_.fail_at(start, "a data byte below 128");
    return value;
  }

  void channel_event(int status) {
    const int kind = status >> 4, channel = status & 0xF;
    Track& track = track_of(channel);
    const int first = data_byte();
    if (kind == 0xC && track.notes.empty() &&
        !programs_[static_cast<size_t>(channel)]) {
      programs_[static_cast<size_t>(channel)] = true;
      track.program = first;
      return;
    }
    if (kind == 0xC || kind == 0xD) {
      track.events.push_back(
          {tick_, {static_cast<char>(status), static_cast<char>(first)}});
      return;
    }
    const int second = data_byte();
    if (kind == 0x9 && second > 0)
      note_on(track, first, second);
    else if (kind == 0x8 || kind == 0x9)
      note_off(track, first);
    else
      track.events.push_back({tick_,
                              {static_cast<char>(status), static_cast<char>(first),
                               static_cast<char>(second)}});
  }

  Track& track_of(int channel) {
    auto& track = tracks_[static_cast<size_t>(channel)];
    if (!track) {
      track.emplace();
      track->channel = channel;
    }
    return *track;
  }

  Open& open_at(const Track& track, int pitch) {
    return open_[track.channel << 7 | pitch];
  }

  void note_on(Track& track, int pitch, int velocity) {
    open_at(track, pitch).push_back(track.notes.size());
    track.notes.push_back({tick_, kOpen, pitch, velocity});
  }

  // Ends the notes that began earlier. Where none did, those that begin at this very
  // tick would have no length: they are left out.
  void note_off(Track& track, int pitch) {
    Open& open = open_at(track, pitch);
    if (open.empty()) ++repairs_.unpaired_offs;
    Open kept;
    for (const size_t place : open) {
      if (track.notes[place].start < tick_)
        track.notes[place].end = tick_;
      else
        kept.push_back(place);
    }
    if (kept.size() == open.size()) {
      for (const size_t place : kept) track.notes[place].end = kEmpty;
      kept.clear();
    }
    open = std::move(kept);
  }

  void hand_over() {
    bool used = false;
    for (auto& track : tracks_) {
      if (!track) continue;
      Track& part = *track;
      used = true;
      for (const Note& note : part.notes) {
        repairs_.unpaired_ons += note.end == kOpen;
        repairs_.empty_notes += note.end == kEmpty;
      }
      std::erase_if(part.notes, [](const Note& note) { return note.end < 0; });
      if (name_) part.name = name_->text;
      music_.tracks.push_back(std::move(part));
    }
    // A chunk without players: its name is that of the piece, or of nothing.
    if (name_ && !used)
      music_.texts.insert(
          music_.texts.begin() + static_cast<std::ptrdiff_t>(name_place_), *name_);
  }

  static constexpr int64_t kOpen = -1, kEmpty = -2;  // for Note::end while reading

  ByteCursor cursor_;
  Music& music_;
  SmfRepairs& repairs_;
  std::array<std::optional<Track>, 16> tracks_;
  std::array<bool, 16> programs_{};  // the channel's instrument was said
  std::map<int, Open> open_;         // by channel and pitch
  std::optional<Text> name_;
  size_t name_place_ = 0;  // among the texts
  int64_t tick_ = 0;
  int running_ = 0;
  bool ended_ = false;
};

struct SmfHeader {
  int tracks;
  bool smpte;
};

SmfHeader read_header(ByteCursor& cursor, Music& music) {
  if (text_of(cursor.take(4, "MThd")) != "MThd")
    cursor.fail_at(0, "MThd, the start of a MIDI file");
  const auto length = cursor.big_endian<uint32_t>("header length");
  if (length < 6) cursor.fail_at(4, "a header of at least 6 bytes");
  const auto format = cursor.big_endian<uint16_t>("format");
  if (format > 1) cursor.fail_at(8, "format 0 or 1, got " + std::to_string(format));
  const auto tracks = cursor.big_endian<uint16_t>("number of tracks");
  if (tracks == 0 || (format == 0 && tracks != 1))
    cursor.fail_at(10, format == 0 ? "one track in format 0" : "a track");
  if (tracks > kMaxTracks)
    cursor.fail_at(10, "at most " + std::to_string(kMaxTracks) + " tracks");
  const auto division = cursor.big_endian<uint16_t>("division");
  const bool smpte = division >= 0x8000;
  music.ticks_per_beat = division;
  if (smpte) {
    const int frames = 256 - (division >> 8), ticks = division & 0xFF;
    if (frames != 24 && frames != 25 && frames != 29 && frames != 30)
      cursor.fail_at(12, "24, 25, 29 or 30 frames a second");
    music.ticks_per_beat = (frames == 29 ? 30 : frames) * ticks;
    music.tempos = {{0, frames == 29 ? 1001000 : 1000000}};
  }
  if (music.ticks_per_beat == 0) cursor.fail_at(12, "a division above zero");
  cursor.take(length - 6, "header");
  return {tracks, smpte};
}

}  // namespace

Music parse_smf(const std::string& name, Bytes bytes, SmfRepairs* repairs) {
  ByteCursor cursor(name, bytes);
  if (bytes.size() > kMaxBytes) cursor.fail_at(kMaxBytes, "at most 16 MB of MIDI file");
  Music music;
  SmfRepairs found;
  const SmfHeader header = read_header(cursor, music);
  const std::vector<Tempo> real_time = music.tempos;
  for (int left = header.tracks; left > 0;) {
    const std::string_view kind = text_of(cursor.take(4, "MTrk, the start of a track"));
    const auto length = cursor.big_endian<uint32_t>("length of a chunk");
    const size_t start = cursor.offset();
    const Bytes chunk = cursor.take(length, "chunk");
    if (kind != "MTrk") continue;
    TrackReader(ByteCursor(name, chunk, start), music, found).read();
    --left;
  }
  if (header.smpte) music.tempos = real_time;
  tidy(music);  // of what was read, only the order of the lists may change
  if (repairs) *repairs = found;
  return music;
}

Music read_smf(const std::string& file, SmfRepairs* repairs) {
  const MappedFile mapped(file);
  return parse_smf(file, mapped.bytes(), repairs);
}

}  // namespace lagwise::data
