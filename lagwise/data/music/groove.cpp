// Groove: every note's beginning and end as a token of its own, and steps of time that
// know the beat, for bass, drums and chords together.
//
//     BOS  (Shift | [Velocity] On_track_pitch | Off_track_pitch)*  EOS
//
// A beat has 12 ticks. Shift_b_t goes to tick t of the beat b beats on: Shift_0_6 to
// the half of this beat, Shift_1_0 to the next one, Shift_2_0 two on; b = 0 needs t
// later than now. Where a step ends is so said by its last part alone, whatever it
// began from. With velocities=V, each On follows one of V words of loudness.
//
// Paper  Liutkus et al., "Relative Positional Encoding for Transformers with Linear
//        Complexity", 2021, arXiv:2105.08399, groove continuation: 794 words.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <tuple>

#include "lagwise/data/formats/smf.h"
#include "lagwise/data/music/token_scheme.h"

namespace lagwise::data {
namespace {

constexpr int64_t kTicks = 12, kOutputTicks = 480;  // a beat here, and in decoded music
constexpr int kSlots = 3, kPitches = 128, kShifts = 24, kDefaultVelocity = 80;
constexpr int kDrumSlot = 1, kBassSlot = 0, kChordSlot = 2;

struct Slot {
  const char* name;
  int channel, program;
};
constexpr Slot kSlot[kSlots] = {
    {"bass", 1, 33}, {"drums", kDrumChannel, 0}, {"chords", 0, 0}};

// Ids: On 0 .. 383, Off 384 .. 767, Shift 768 .. 791, EOS, BOS, then velocities.
constexpr int32_t kOffs = kSlots * kPitches, kFirstShift = 2 * kOffs;
constexpr int32_t kEos = kFirstShift + kShifts, kBos = kEos + 1,
                  kFirstVelocity = kBos + 1;

// Shift_0_1 .. 0_11, 1_0 .. 1_11, 2_0 are the numbers 1 .. 24 in ticks.
int32_t shift_id(int64_t beats, int64_t tick) {
  return static_cast<int32_t>(kFirstShift + beats * kTicks + tick - 1);
}
bool is_shift(int32_t id) { return id >= kFirstShift && id < kEos; }

// Where a shift leads from `now`; not later than now for one that makes no sense.
int64_t target(int32_t id, int64_t now) {
  return now / kTicks * kTicks + (id - kFirstShift + 1);
}

std::vector<std::string> make_words(int velocities) {
  std::vector<std::string> words;
  for (const char* kind : {"On_", "Off_"})
    for (const Slot& slot : kSlot)
      for (int pitch = 0; pitch < kPitches; ++pitch)
        words.push_back(kind + std::string(slot.name) + "_" + std::to_string(pitch));
  for (int64_t tick = 1; tick <= kShifts; ++tick)
    words.push_back("Shift_" + std::to_string(tick / kTicks) + "_" +
                    std::to_string(tick % kTicks));
  words.insert(words.end(), {"EOS", "BOS"});
  for (int i = 0; i < velocities; ++i) words.push_back("Velocity_" + std::to_string(i));
  return words;
}

/// The loudness a word stands for, of so many words.
int groove_velocity(int word, int words) { return (2 * word + 1) * 64 / words; }

struct SlotNote {
  int64_t start, end;
  int slot, pitch, velocity;
};

class GrooveGrammar : public Grammar {
 public:
  GrooveGrammar(int32_t size, bool velocities) : size_(size), velocities_(velocities) {}

  bool legal(int32_t id) const override {
    if (id < 0 || id >= size_ || ended_) return false;
    if (!begun_) return id == kBos;
    if (loud_ || id < kOffs)
      return id < kOffs && loud_ == velocities_ && !sounding_[static_cast<size_t>(id)];
    if (id < kFirstShift) return sounding_[static_cast<size_t>(id - kOffs)];
    if (is_shift(id)) return target(id, now_) > now_;
    if (id == kEos) return count_ == 0;
    return id >= kFirstVelocity && count_ < kOffs;
  }

  void advance(int32_t id) override {
    loud_ = id >= kFirstVelocity;
    begun_ = true;
    if (id == kEos) ended_ = true;
    if (is_shift(id)) now_ = target(id, now_);
    if (id >= kFirstShift) return;
    const bool on = id < kOffs;
    sounding_[static_cast<size_t>(on ? id : id - kOffs)] = on;
    count_ += on ? 1 : -1;
  }

 private:
  int32_t size_;
  bool velocities_;
  bool begun_ = false, ended_ = false, loud_ = false;  // loud: a velocity was just said
  std::array<bool, kOffs> sounding_{};
  int count_ = 0;
  int64_t now_ = 0;
};

class GrooveDecoder : public MusicDecoder {
 public:
  explicit GrooveDecoder(int velocities) : velocities_(velocities) {
    music.ticks_per_beat = kOutputTicks;
    for (const Slot& slot : kSlot)
      music.tracks.push_back({slot.name, slot.channel, slot.program, {}, {}});
    start_.fill(-1);
  }

  void take(int32_t id) override {
    if (id < 0 || id >= kFirstVelocity + velocities_ || ended_) return;
    ended_ = id == kEos;
    if (is_shift(id)) now_ = std::max(now_, target(id, now_));
    if (id >= kFirstVelocity)
      velocity_ = groove_velocity(id - kFirstVelocity, velocities_);
    if (id >= kFirstShift) return;
    const auto key = static_cast<size_t>(id % kOffs);
    end_note(key);  // an On of a sounding note begins it anew
    if (id < kOffs) start_[key] = now_, loudness_[key] = velocity_;
  }

  void finish() override {
    now_ = std::max<int64_t>(now_, 1);
    for (size_t key = 0; key < start_.size(); ++key) end_note(key);
    music.end = now();
  }

  int64_t now() const override { return now_ * kScale; }

 private:
  static constexpr int64_t kScale = kOutputTicks / kTicks;

  void end_note(size_t key) {
    if (start_[key] >= 0)
      music.tracks[key / kPitches].notes.push_back({start_[key] * kScale, now(),
                                                    static_cast<int>(key % kPitches),
                                                    loudness_[key]});
    start_[key] = -1;
  }

  int velocities_;
  bool ended_ = false;
  std::array<int64_t, kOffs> start_;  // of the sounding notes; -1: it is silent
  std::array<int, kOffs> loudness_{};
  int velocity_ = kDefaultVelocity;
  int64_t now_ = 0;  // in ticks of the tokens
};

class Groove : public TokenScheme {
 public:
  explicit Groove(int velocities)
      : velocities_(velocities), vocabulary_(make_words(velocities)) {}

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::unique_ptr<Grammar> grammar() const override {
    return std::make_unique<GrooveGrammar>(vocabulary_.size(), velocities_ > 0);
  }

  int32_t end() const override { return kEos; }

  Tokenised encode(const Music& music) const override {
    Tokenised out;
    std::vector<SlotNote> notes = quantised(music, out.loss);
    part(notes, out.loss);
    write(notes, out.ids);
    return out;
  }

  std::unique_ptr<MusicDecoder> decoder() const override {
    return std::make_unique<GrooveDecoder>(velocities_);
  }

  bool transpose(std::span<int32_t> ids, int semitones) const override {
    std::vector<int32_t> moved(ids.begin(), ids.end());
    for (int32_t& id : moved) {
      if (id < 0 || id >= kFirstShift) continue;
      if (id % kOffs / kPitches == kDrumSlot) continue;
      const int pitch = id % kPitches + semitones;
      if (pitch < 0 || pitch >= kPitches) return false;
      id += semitones;
    }
    std::copy(moved.begin(), moved.end(), ids.begin());
    return true;
  }

  // The tokens do not tell the meter: bars of four beats. A bar begins with the step of
  // time that leads into it, or past its line.
  std::vector<int64_t> bar_starts(std::span<const int32_t> ids) const override {
    constexpr int64_t kBar = 4 * kTicks;
    std::vector<int64_t> starts = {0};
    int64_t now = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (!is_shift(ids[i])) continue;
      const int64_t next = std::max(now, target(ids[i], now));
      if (next / kBar > now / kBar) starts.push_back(static_cast<int64_t>(i));
      now = next;
    }
    return starts;
  }

 private:
  static int slot_of(const Track& track) {
    if (track.drums()) return kDrumSlot;
    const bool bass = track.program / 8 == 4 || track.name == "bass";
    return bass ? kBassSlot : kChordSlot;
  }

  int word_of(int velocity) const { return velocity * velocities_ / 128; }

  // All notes on the grid of ticks; one that would vanish gets a tick.
  std::vector<SlotNote> quantised(const Music& music, TokenLoss& loss) const {
    std::vector<SlotNote> notes;
    std::array<int64_t, kSlots> players{};
    const int64_t unit = music.ticks_per_beat;
    const auto ticks = [&](int64_t t) { return (2 * t * kTicks + unit) / (2 * unit); };
    for (const Track& track : music.tracks) {
      const int slot = slot_of(track);
      if (!track.notes.empty() && ++players[static_cast<size_t>(slot)] > 1)
        ++loss.changed[std::string("further tracks, merged into ") + kSlot[slot].name];
      for (const Note& note : track.notes) {
        ++loss.notes;
        const int64_t start = ticks(note.start);
        if (start >= kMaxBars * 4 * kTicks) {
          ++loss.changed["notes after 65536 bars, dropped"];
          continue;
        }
        const int64_t end = std::clamp(ticks(note.end), start + 1, start + kLongest);
        const double beat = static_cast<double>(unit);
        loss.keep(
            static_cast<double>(start) / kTicks -
                static_cast<double>(note.start) / beat,
            static_cast<double>(end - start) / kTicks -
                static_cast<double>(note.end - note.start) / beat,
            note.velocity - (velocities_ > 0
                                 ? groove_velocity(word_of(note.velocity), velocities_)
                                 : kDefaultVelocity));
        notes.push_back({start, end, slot, note.pitch, note.velocity});
      }
    }
    if (music.tempos.size() > 1)
      loss.changed["tempo changes, dropped"] +=
          static_cast<int64_t>(music.tempos.size()) - 1;
    return notes;
  }

  // A pitch of a track sounds once at a time: the later note ends the earlier.
  static void part(std::vector<SlotNote>& notes, TokenLoss& loss) {
    std::stable_sort(
        notes.begin(), notes.end(),
        [](const SlotNote& a, const SlotNote& b) { return a.start < b.start; });
    std::array<int64_t, kOffs> last;
    last.fill(-1);
    size_t kept = 0;
    for (size_t i = 0; i < notes.size(); ++i) {
      const SlotNote note = notes[i];
      int64_t& earlier = last[size_t(note.slot) * kPitches + size_t(note.pitch)];
      SlotNote* const before =
          earlier < 0 ? nullptr : &notes[static_cast<size_t>(earlier)];
      if (before && before->start == note.start) {
        before->end = std::max(before->end, note.end);
        --loss.kept;
        ++loss.changed["notes that double another, dropped"];
        continue;
      }
      if (before) before->end = std::min(before->end, note.start);
      earlier = static_cast<int64_t>(kept);
      notes[kept++] = note;
    }
    notes.resize(kept);
  }

  void write(const std::vector<SlotNote>& notes, std::vector<int32_t>& ids) const {
    // At one tick: ends before beginnings, then by track and pitch.
    std::vector<std::tuple<int64_t, bool, int32_t, int>> events;
    for (const SlotNote& note : notes) {
      const int32_t key = note.slot * kPitches + note.pitch;
      events.emplace_back(note.start, true, key, note.velocity);
      events.emplace_back(note.end, false, key, 0);
    }
    std::sort(events.begin(), events.end());
    ids.push_back(kBos);
    int64_t now = 0;
    for (const auto& [tick, on, key, velocity] : events) {
      for (; tick > now; now = target(ids.back(), now)) {
        const int64_t beats = tick / kTicks - now / kTicks;
        ids.push_back(beats >= 2 ? shift_id(2, 0) : shift_id(beats, tick % kTicks));
      }
      if (on && velocities_ > 0) ids.push_back(kFirstVelocity + word_of(velocity));
      ids.push_back(on ? key : key + kOffs);
    }
    ids.push_back(kEos);
  }

  static constexpr int64_t kLongest = 1024 * 4 * kTicks;  // a note: 1024 bars

  int velocities_;
  Vocabulary vocabulary_;
};

constexpr int kMostVelocities = 64;

const RegisterTokenScheme groove_registered({
    .name = "groove",
    .summary = "note-on, note-off and beat-relative time for bass, drums and chords",
    .paper = "arXiv:2105.08399",
    .make = [](Spec& spec) -> std::unique_ptr<TokenScheme> {
      const int64_t velocities = spec.take("velocities", 0);
      if (velocities < 0 || velocities > kMostVelocities)
        throw std::invalid_argument("groove: expected velocities from 0 to 64, got " +
                                    std::to_string(velocities));
      return std::make_unique<Groove>(static_cast<int>(velocities));
    },
    .variants =
        [] {
          std::vector<std::string> texts;
          for (int many = 0; many <= kMostVelocities; ++many)
            texts.push_back("groove:velocities=" + std::to_string(many));
          return texts;
        },
});

}  // namespace
}  // namespace lagwise::data
