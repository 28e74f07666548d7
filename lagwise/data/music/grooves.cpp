#include "lagwise/data/music/grooves.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace lagwise::data {
namespace {

constexpr int64_t kStyleStream = 0x4753, kSongStream = 0x474E;  // of the noise
constexpr int64_t kBeat = 480, kTick = kBeat / 12;
constexpr int kFewestBars = 32;
constexpr int kKick = 36, kSnare = 38, kCrash = 49;
constexpr int kFillPitch[] = {38, 48, 45, 41};  // snare, then toms downwards
constexpr int kMajorScale[] = {0, 2, 4, 5, 7, 9, 11};
constexpr int kMinorScale[] = {0, 2, 3, 5, 7, 8, 10};

/// Plays one song, bar by bar.
class Band {
 public:
  Band(const GrooveStyle& style, Dice dice) : style_(style), dice_(dice) {
    key_ = dice_.pick(12);
    form_ = dice_.one_of(style.forms);
    while (static_cast<int>(form_.size()) * style.section_bars < kFewestBars)
      form_ += form_;
    const int bpm = style.bpm + dice_.between(-4, 4);
    music_.ticks_per_beat = kBeat;
    music_.tempos = {{0, std::lround(6e7 / bpm)}};
    music_.time_signatures = {{0, style.beats, 4, 24, 8}};
    music_.texts = {{0, Text::kText, "style: " + style.name}};
    music_.tracks = {{"drums", kDrumChannel, 0, {}, {}},
                     {"bass", 1, style.bass_program, {}, {}},
                     {"chords", 0, style.chord_program, {}, {}}};
  }

  Music play() {
    const int bars = static_cast<int>(form_.size()) * style_.section_bars;
    for (int bar = 0; bar < bars; ++bar) {
      const int within = bar % style_.section_bars;
      const char section = form_[static_cast<size_t>(bar / style_.section_bars)];
      if (within == 0) music_.texts.push_back({start(bar), Text::kMarker, {section}});
      drums(bar, within, section);
      bass(bar, bars, section);
      chords(bar, section);
    }
    // A last chord on the tonic, so that the end is one.
    const int64_t end = start(bars);
    add(0, end, kBeat, kKick, 100);
    add(0, end, kBeat, kCrash, 100);
    add(1, end, 2 * kBeat, bass_pitch(0), 90);
    for (const int pitch : chord(0)) add(2, end, 2 * kBeat, pitch, 80);
    tidy(music_);
    return std::move(music_);
  }

 private:
  int64_t start(int bar) const { return int64_t{bar} * style_.beats * kBeat; }

  // The place of a sixteenth within its bar. Swung, the second half of a beat comes
  // after two thirds of it.
  int64_t place(int step) const {
    constexpr int64_t kStraight[] = {0, 3, 6, 9}, kSwung[] = {0, 4, 8, 10};
    const int64_t tick = style_.swing ? kSwung[step % 4] : kStraight[step % 4];
    return step / 4 * kBeat + tick * kTick;
  }

  int steps() const { return 4 * style_.beats; }

  void add(size_t track, int64_t at, int64_t length, int pitch, int velocity) {
    const int human = dice_.between(-4, 4);
    music_.tracks[track].notes.push_back(
        {at, at + length, pitch, std::clamp(velocity + human, 1, 127)});
  }

  // The chorus patterns serve the section B, the verse's all others.
  static size_t pattern_of(char section) { return section == 'B' ? 1 : 0; }

  int degree(int bar, char section) const {
    const auto& progression = style_.progressions[static_cast<size_t>(section - 'A')];
    return progression[static_cast<size_t>(bar % style_.section_bars) %
                       progression.size()];
  }

  char section_of(int bar) const {
    return form_[static_cast<size_t>(bar / style_.section_bars)];
  }

  int scale_pitch(int degree) const {
    const int* scale = style_.minor ? kMinorScale : kMajorScale;
    return key_ + scale[degree % 7];
  }

  void drums(int bar, int within, char section) {
    const DrumBar& pattern = style_.drums[pattern_of(section)];
    const bool fill = within == style_.section_bars - 1;
    const int fill_from = fill ? steps() / 2 : steps();
    const auto play = [&](const std::string& line, int pitch, int loud, int soft) {
      for (int step = 0; step < fill_from; ++step) {
        const char hit = line[static_cast<size_t>(step)];
        if (hit != '.')
          add(0, start(bar) + place(step), kTick, pitch, hit == 'x' ? loud : soft);
      }
    };
    play(pattern.kick, kKick, 105, 75);
    play(pattern.snare, kSnare, 100, 50);
    play(pattern.hat, style_.hat_pitch, 80, 55);
    if (within % style_.crash_every == 0) add(0, start(bar), kTick, kCrash, 95);
    for (int step = fill_from; step < steps(); ++step) {
      const char hit = style_.fill[static_cast<size_t>(step - fill_from)];
      if (hit != '.')
        add(0, start(bar) + place(step), kTick, kFillPitch[hit - '1'], 90);
    }
  }

  int bass_pitch(int degree) const { return 28 + (scale_pitch(degree) + 8) % 12; }

  void bass(int bar, int bars, char section) {
    const std::string& line = style_.bass[pattern_of(section)];
    const int now = degree(bar, section);
    const int next = bar + 1 < bars ? degree(bar + 1, section_of(bar + 1)) : 0;
    for (int step = 0; step < steps(); ++step) {
      const char what = line[static_cast<size_t>(step)];
      if (what == '.' || what == '-') continue;
      int end = step + 1;
      while (end < steps() && line[static_cast<size_t>(end)] == '-') ++end;
      const int root = bass_pitch(now);
      const int third = root + (scale_pitch(now + 2) - scale_pitch(now) + 24) % 12;
      const int fifth = root + (scale_pitch(now + 4) - scale_pitch(now) + 24) % 12;
      const int pitch = what == 'o'   ? root + 12
                        : what == 'f' ? fifth
                        : what == 't' ? third
                        : what == 'a' ? bass_pitch(next) - 1
                                      : root;
      const int64_t stop = end < steps() ? place(end) : style_.beats * kBeat;
      add(1, start(bar) + place(step), stop - place(step), pitch, 88);
    }
  }

  // Close position: each tone the one nearest above the lowest note allowed.
  std::vector<int> chord(int degree) const {
    std::vector<int> pitches;
    const int tones = style_.sevenths ? 4 : 3;
    for (int i = 0; i < tones; ++i) {
      const int tone = scale_pitch(degree + 2 * i);
      pitches.push_back(style_.chord_low + (tone - style_.chord_low + 120) % 12);
    }
    std::sort(pitches.begin(), pitches.end());
    return pitches;
  }

  void chords(int bar, char section) {
    const std::string& line = style_.comping[pattern_of(section)];
    for (int step = 0; step < steps(); ++step) {
      const char what = line[static_cast<size_t>(step)];
      if (what == '.') continue;
      int end = step + 1;
      while (what == 'l' && end < steps() && line[static_cast<size_t>(end)] == '.')
        ++end;
      const int64_t stop = end < steps() ? place(end) : style_.beats * kBeat;
      for (const int pitch : chord(degree(bar, section)))
        add(2, start(bar) + place(step), stop - place(step), pitch, 72);
    }
  }

  const GrooveStyle& style_;
  Dice dice_;
  Music music_;
  std::string form_;
  int key_ = 0;
};

}  // namespace

Grooves::Grooves(int styles, uint64_t seed) : styles_(styles), seed_(seed) {
  if (styles < 1 || styles > 4096)
    throw std::invalid_argument("grooves: expected 1 to 4096 styles, got " +
                                std::to_string(styles));
}

GrooveStyle Grooves::style(int number) const {
  return make_groove_style(Dice(Noise(seed_, kStyleStream, number).at({})), number);
}

Music Grooves::song(int64_t index) const {
  if (index < 0 || index >> 32 != 0)
    throw std::invalid_argument("grooves: expected a song from 0 to 2^32 - 1");
  const GrooveStyle style = this->style(style_of(index));
  return Band(style, Dice(Noise(seed_, kSongStream, index).at({}))).play();
}

}  // namespace lagwise::data
