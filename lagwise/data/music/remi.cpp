// REMI: bars, positions in the bar, and notes as pitch, velocity and duration.
//
//     Bar  Beat_k [Chord] [Tempo] (Pitch Velocity Duration)*  Beat_k' ..  Bar .. EOS
//
// for one piano in 4/4, on a grid of sixteen positions a bar, times in ticks of 1/480
// beat. Token for token what the pipeline of Pop1K7 wrote (a test compares), quirks
// included: the piece begins with the bar of its first note, and what starts on the
// last bar line or is rounded beyond it is dropped.
//
// Paper  Huang and Yang, "Pop Music Transformer", 2020, arXiv:2002.00212; the
//        vocabulary is that of Liutkus et al., 2021, arXiv:2105.08399.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "lagwise/data/formats/smf.h"
#include "lagwise/data/music/token_scheme.h"

namespace lagwise::data {
namespace {

constexpr int64_t kRemiBeat = 480, kBar = 4 * kRemiBeat, kGrid = kRemiBeat / 4;
constexpr int kPositions = 16, kLowest = 22, kHighest = 107;
constexpr int kSoftest = 40, kLoudest = 86, kVelocityStep = 2;
constexpr int kSlowest = 32, kFastest = 224, kTempoStep = 3;
// Tempos of the grid that never occurred when the vocabulary was made.
constexpr int kNoTempo[] = {152, 164, 173, 179, 185, 191, 197, 203, 209, 212, 218};
constexpr const char* kRoots[] = {"C",  "C#", "D",  "D#", "E",  "F",
                                  "F#", "G",  "G#", "A",  "A#", "B"};
constexpr const char* kQualities[] = {"M",  "m",  "+",   "o",    "7",   "M7",
                                      "m7", "o7", "/o7", "sus2", "sus4"};

enum class Kind { kBar, kRemiBeat, kChord, kTempo, kPitch, kVelocity, kDuration, kEnd };

struct Token {
  std::string word;
  Kind kind;
  int value = 0;             // of a chord: 11 root + quality, -1 for none
  std::string meaning = {};  // of a chord: "C_M"
};

bool tempo_exists(int bpm) {
  return std::count(std::begin(kNoTempo), std::end(kNoTempo), bpm) == 0;
}

// All tokens; their ids are their places in alphabetical order.
std::vector<Token> make_tokens() {
  std::vector<Token> tokens = {{"Bar_None", Kind::kBar},
                               {"EOS_None", Kind::kEnd},
                               {"Chord_N_N", Kind::kChord, -1, "N_N"}};
  const auto numbers = [&](const char* word, Kind kind, int first, int last, int step) {
    for (int i = first; i <= last; i += step)
      if (kind != Kind::kTempo || tempo_exists(i))
        tokens.push_back({word + std::to_string(i), kind, i});
  };
  numbers("Beat_", Kind::kRemiBeat, 0, kPositions - 1, 1);
  numbers("Tempo_", Kind::kTempo, kSlowest, kFastest, kTempoStep);
  numbers("Note_Pitch_", Kind::kPitch, kLowest, kHighest, 1);
  numbers("Note_Velocity_", Kind::kVelocity, kSoftest, kLoudest, kVelocityStep);
  numbers("Note_Duration_", Kind::kDuration, 0, kBar, kGrid);
  int chord = 0;
  for (const char* root : kRoots)
    for (const char* quality : kQualities) {
      const std::string meaning = std::string(root) + "_" + quality;
      tokens.push_back({"Chord_" + meaning, Kind::kChord, chord++, meaning});
    }
  std::sort(tokens.begin(), tokens.end(),
            [](const Token& a, const Token& b) { return a.word < b.word; });
  return tokens;
}

std::vector<std::string> words_of(const std::vector<Token>& tokens) {
  std::vector<std::string> words;
  for (const Token& token : tokens) words.push_back(token.word);
  return words;
}

// t / unit rounded to a whole number, halves to the even one. t >= 0.
int64_t round_half_even(int64_t t, int64_t unit) {
  const int64_t whole = t / unit, twice = 2 * (t % unit);
  return whole + (twice > unit || (twice == unit && whole % 2 == 1));
}

int64_t to_grid(int64_t t) { return round_half_even(t, kGrid) * kGrid; }

// A time of the music in ticks of 1/480 beat.
int64_t rescale(int64_t tick, int ticks_per_beat) {
  return (2 * tick * kRemiBeat + ticks_per_beat) / (int64_t{2} * ticks_per_beat);
}

// The word's tempo nearest to `bpm`, the lower of two equally near.
int nearest_tempo(double bpm) {
  int nearest = kSlowest;
  for (int grid = kSlowest; grid <= kFastest; grid += kTempoStep)
    if (std::abs(grid - bpm) < std::abs(nearest - bpm)) nearest = grid;
  return nearest;
}

int existing_tempo(int bpm) {
  while (!tempo_exists(bpm)) bpm -= kTempoStep;
  return bpm;
}

class RemiGrammar : public Grammar {
 public:
  explicit RemiGrammar(const std::vector<Token>& tokens) : tokens_(tokens) {}

  bool legal(int32_t id) const override {
    if (id < 0 || static_cast<size_t>(id) >= tokens_.size()) return false;
    const Token& next = tokens_[static_cast<size_t>(id)];
    const bool in_beat = beat_ >= 0;  // a Beat came after the last Bar
    const bool between = last_ && last_ != Kind::kPitch && last_ != Kind::kVelocity &&
                         last_ != Kind::kEnd;
    switch (next.kind) {
      case Kind::kBar:
        return !last_ || (between && last_ != Kind::kRemiBeat);
      case Kind::kEnd:
        return last_ == Kind::kBar;
      case Kind::kRemiBeat:
        return between && last_ != Kind::kRemiBeat && next.value > beat_;
      case Kind::kChord:
        return last_ == Kind::kRemiBeat;
      case Kind::kTempo:
        return last_ == Kind::kRemiBeat || last_ == Kind::kChord;
      case Kind::kPitch:
        return between && in_beat;
      case Kind::kVelocity:
        return last_ == Kind::kPitch;
      case Kind::kDuration:
        return last_ == Kind::kVelocity;
    }
    return false;
  }

  void advance(int32_t id) override {
    const Token& token = tokens_[static_cast<size_t>(id)];
    last_ = token.kind;
    if (token.kind == Kind::kBar) beat_ = -1;
    if (token.kind == Kind::kRemiBeat) beat_ = token.value;
  }

 private:
  const std::vector<Token>& tokens_;
  std::optional<Kind> last_;
  int beat_ = -1;
};

class RemiDecoder : public MusicDecoder {
 public:
  explicit RemiDecoder(const std::vector<Token>& tokens) : tokens_(tokens) {
    music.ticks_per_beat = kRemiBeat;
    music.tracks = {{"piano", 0, 0, {}, {}}};
  }

  void take(int32_t id) override {
    if (id < 0 || static_cast<size_t>(id) >= tokens_.size() || ended_) return;
    const Token& token = tokens_[static_cast<size_t>(id)];
    if (bar_ < 0 && token.kind != Kind::kBar) return;
    ended_ = token.kind == Kind::kEnd;
    if (token.kind == Kind::kBar) now_ = ++bar_ * kBar;
    if (token.kind == Kind::kRemiBeat) now_ = bar_ * kBar + token.value * kGrid;
    if (token.kind == Kind::kTempo)
      music.tempos.push_back({now_, std::lround(6e7 / token.value)});
    if (token.kind == Kind::kChord)
      music.texts.push_back({now_, Text::kMarker, marker_of(token)});
    take_note(token);
  }

  void finish() override { music.end = std::max<int64_t>(bar_ + 1, 0) * kBar; }

  int64_t now() const override { return now_; }

 private:
  static int64_t length_of(const Token& duration) {
    return duration.value > 0 ? duration.value : kGrid / 2;
  }

  static std::string marker_of(const Token& chord) {
    return chord.meaning + "_" + chord.meaning.substr(0, chord.meaning.find('_'));
  }

  void take_note(const Token& token) {
    if (token.kind == Kind::kDuration && pitch_ && velocity_)
      music.tracks[0].notes.push_back(
          {now_, now_ + length_of(token), pitch_->value, velocity_->value});
    velocity_ = token.kind == Kind::kVelocity && pitch_ ? &token : nullptr;
    if (!velocity_) pitch_ = token.kind == Kind::kPitch ? &token : nullptr;
  }

  const std::vector<Token>& tokens_;
  bool ended_ = false;
  int64_t bar_ = -1, now_ = 0;
  const Token *pitch_ = nullptr, *velocity_ = nullptr;  // of a note half said
};

/// Everything that starts at one place of the grid, as ids.
struct Place {
  int32_t chord = -1, tempo = -1;
  std::vector<int32_t> notes;
};

class Remi : public TokenScheme {
 public:
  Remi() : tokens_(make_tokens()), vocabulary_(words_of(tokens_)) {}

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::unique_ptr<Grammar> grammar() const override {
    return std::make_unique<RemiGrammar>(tokens_);
  }

  int32_t end() const override { return vocabulary_.id("EOS_None"); }

  Tokenised encode(const Music& music) const override {
    Tokenised out;
    const std::vector<Note> notes = piano(music, out.loss);
    const int64_t offset = notes.empty() ? 0 : to_grid(notes[0].start) / kBar;
    const int64_t last = notes.empty() ? 0 : notes.back().start;
    const int64_t bars = std::min((last + kBar - 1) / kBar - offset, kMaxBars);
    std::map<int64_t, Place> places;
    const auto place_of = [&](int64_t tick) -> Place& {
      return places[to_grid(std::max<int64_t>(tick - offset * kBar, 0))];
    };
    for (const Text& text : music.texts)
      if (const int32_t chord = chord_of(text, out.loss); chord >= 0) {
        Place& place = place_of(rescale(text.tick, music.ticks_per_beat));
        if (place.chord < 0) place.chord = chord;
      }
    for (const Tempo& tempo : music.tempos) {
      Place& place = place_of(rescale(tempo.tick, music.ticks_per_beat));
      if (place.tempo < 0) place.tempo = tempo_of(tempo, out.loss);
    }
    for (const Note& note : notes) {
      const int64_t at = to_grid(note.start - offset * kBar);
      if (at < bars * kBar)
        add_note(note, at - (note.start - offset * kBar), places[at].notes, out.loss);
      else
        ++out.loss.changed["notes on or after the last bar line, dropped"];
    }
    write(places, bars, out.ids);
    return out;
  }

  std::unique_ptr<MusicDecoder> decoder() const override {
    return std::make_unique<RemiDecoder>(tokens_);
  }

  bool transpose(std::span<int32_t> ids, int semitones) const override {
    std::vector<int32_t> moved(ids.begin(), ids.end());
    for (int32_t& id : moved) {
      if (!vocabulary_.holds(id)) continue;
      const Token& token = tokens_[static_cast<size_t>(id)];
      if (token.kind == Kind::kPitch) {
        if (token.value + semitones < kLowest || token.value + semitones > kHighest)
          return false;
        id = vocabulary_.id("Note_Pitch_" + std::to_string(token.value + semitones));
      } else if (token.kind == Kind::kChord && token.value >= 0) {
        constexpr int kMany = static_cast<int>(std::size(kQualities));
        const int root = ((token.value / kMany + semitones) % 12 + 12) % 12;
        id = vocabulary_.id(std::string("Chord_") + kRoots[root] + "_" +
                            kQualities[token.value % kMany]);
      }
    }
    std::copy(moved.begin(), moved.end(), ids.begin());
    return true;
  }

  std::vector<int64_t> bar_starts(std::span<const int32_t> ids) const override {
    const int32_t bar = vocabulary_.id("Bar_None");
    std::vector<int64_t> starts;
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] == bar) starts.push_back(static_cast<int64_t>(i));
    if (starts.empty()) starts.push_back(0);
    return starts;
  }

 private:
  // Every note but the drums', in ticks of 1/480 beat: by start, then high to low.
  static std::vector<Note> piano(const Music& music, TokenLoss& loss) {
    std::vector<Note> notes;
    int64_t players = 0;
    const auto count = [&](const char* what, auto many) {
      if (many > 0) loss.changed[what] += static_cast<int64_t>(many);
    };
    for (const Track& track : music.tracks) {
      loss.notes += static_cast<int64_t>(track.notes.size());
      if (track.drums()) {
        count("drum notes, dropped", track.notes.size());
        continue;
      }
      players += !track.notes.empty();
      count("tracks of other instruments, given to the piano",
            track.program != 0 && !track.notes.empty());
      for (Note note : track.notes) {
        note.start = rescale(note.start, music.ticks_per_beat);
        note.end = rescale(note.end, music.ticks_per_beat);
        notes.push_back(note);
      }
    }
    count("further tracks, merged", std::max<int64_t>(players - 1, 0));
    count("time signatures, read as 4/4",
          std::count_if(music.time_signatures.begin(), music.time_signatures.end(),
                        [](const TimeSignature& s) {
                          return s.numerator != 4 || s.denominator != 4;
                        }));
    std::stable_sort(notes.begin(), notes.end(), [](const Note& a, const Note& b) {
      return a.start != b.start ? a.start < b.start : a.pitch > b.pitch;
    });
    return notes;
  }

  // The id of a marker "C_M7_G"; -1 for other texts.
  int32_t chord_of(const Text& text, TokenLoss& loss) const {
    if (text.kind != Text::kMarker || text.text.starts_with("global")) return -1;
    const std::string root_quality = text.text.substr(0, text.text.rfind('_'));
    const int32_t id = vocabulary_.id("Chord_" + root_quality);
    if (id < 0) ++loss.changed["markers that are no chord, dropped"];
    return id;
  }

  int32_t tempo_of(const Tempo& tempo, TokenLoss& loss) const {
    const int bpm = nearest_tempo(6e7 / static_cast<double>(tempo.us_per_beat));
    const int word = existing_tempo(bpm);
    if (word != bpm) ++loss.changed["tempos without a word, slowed to the next"];
    return vocabulary_.id("Tempo_" + std::to_string(word));
  }

  void add_note(const Note& note, int64_t shift, std::vector<int32_t>& ids,
                TokenLoss& loss) const {
    if (note.pitch < kLowest || note.pitch > kHighest) {
      ++loss.changed["pitches outside 22 to 107, dropped"];
      return;
    }
    const int64_t length = to_grid(std::min(note.end - note.start, kBar));
    const int velocity =
        std::clamp(note.velocity / kVelocityStep * kVelocityStep, kSoftest, kLoudest);
    if (note.velocity > kLoudest + 1) ++loss.changed["velocities above 86, softened"];
    for (const auto& [word, value] :
         {std::pair<const char*, int64_t>("Pitch_", note.pitch),
          {"Velocity_", velocity},
          {"Duration_", length}})
      ids.push_back(vocabulary_.id("Note_" + (word + std::to_string(value))));
    loss.keep(static_cast<double>(shift) / kRemiBeat,
              static_cast<double>(note.end - note.start - length) / kRemiBeat,
              note.velocity - velocity);
  }

  void write(const std::map<int64_t, Place>& places, int64_t bars,
             std::vector<int32_t>& ids) const {
    const int32_t bar_id = vocabulary_.id("Bar_None");
    auto next = places.begin();
    for (int64_t bar = 0; bar < bars; ++bar) {
      ids.push_back(bar_id);
      for (; next != places.end() && next->first < (bar + 1) * kBar; ++next) {
        const auto& [tick, place] = *next;
        if (place.chord < 0 && place.tempo < 0 && place.notes.empty()) continue;
        ids.push_back(vocabulary_.id("Beat_" + std::to_string(tick % kBar / kGrid)));
        if (place.chord >= 0) ids.push_back(place.chord);
        if (place.tempo >= 0) ids.push_back(place.tempo);
        ids.insert(ids.end(), place.notes.begin(), place.notes.end());
      }
    }
    ids.push_back(bar_id);
    ids.push_back(vocabulary_.id("EOS_None"));
  }

  // A note shorter than the grid gets half of it, which rounds back to nothing.
  std::vector<Token> tokens_;
  Vocabulary vocabulary_;
};

const RegisterTokenScheme remi_registered({
    .name = "remi",
    .summary = "bars, sixteenth positions, chords, tempos and notes of one piano",
    .paper = "arXiv:2002.00212",
    .make = [](Spec&) -> std::unique_ptr<TokenScheme> {
      return std::make_unique<Remi>();
    },
});

}  // namespace
}  // namespace lagwise::data
