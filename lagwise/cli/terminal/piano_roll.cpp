#include "lagwise/cli/terminal/piano_roll.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace lagwise::cli {
namespace {

using data::Music;
using data::Note;
using data::Track;

constexpr int kNothing = -1;
// Of the 256 colours of terminals, such as can be told apart on dark and on light.
constexpr std::array kColours = {33, 172, 71, 167, 134, 37, 100, 241};

struct DrumLine {
  const char* name;
  std::array<int, 5> pitches;
};
constexpr DrumLine kDrumLines[] = {{"cymbal", {49, 51, 55, 57, 59}},
                                   {"hat", {42, 44, 46, 70, 82}},
                                   {"snare", {37, 38, 39, 40, 0}},
                                   {"kick", {35, 36, 0, 0, 0}}};

/// Which track sounds where: cell (line, column), or kNothing.
class Grid {
 public:
  Grid(int lines, int columns)
      : columns_(columns),
        cells_(static_cast<size_t>(lines) * static_cast<size_t>(columns), kNothing) {}
  int& at(int line, int column) {
    return cells_[static_cast<size_t>(line) * static_cast<size_t>(columns_) +
                  static_cast<size_t>(column)];
  }

 private:
  int columns_;
  std::vector<int> cells_;
};

class Roll {
 public:
  Roll(const Music& music, const PianoRoll& how) : music_(music), how_(how) {
    for (const Track& track : music.tracks)
      for (const Note& note : track.notes) {
        any_ = true;
        drums_ = drums_ || track.drums();
        if (track.drums()) continue;
        low_ = std::min(low_, note.pitch), high_ = std::max(high_, note.pitch);
      }
    const int64_t room = int64_t{how.columns} * how.systems;
    step_ = std::max<int64_t>(1, music.ticks_per_beat / 4);
    while ((music.end + step_ - 1) / step_ > room) step_ *= 2;
  }

  std::string text() const {
    std::string out;
    if (!any_) return out;
    const int64_t across = step_ * how_.columns;
    for (int64_t from = 0; from < music_.end; from += across) out += system(from);
    return out + legend();
  }

 private:
  int column_of(int64_t tick, int64_t from) const {
    return static_cast<int>((tick - from) / step_);
  }

  // Every track's notes within [from, from + across) on the grid of `lines`.
  template <class LineOf>
  Grid filled(int lines, int64_t from, bool drums, const LineOf& line_of) const {
    Grid grid(lines, how_.columns);
    for (size_t t = 0; t < music_.tracks.size(); ++t) {
      const Track& track = music_.tracks[t];
      if (track.drums() != drums) continue;
      for (const Note& note : track.notes) {
        if (note.end <= from || (drums && note.start < from)) continue;
        const int begin = note.start < from ? 0 : column_of(note.start, from);
        const int last = drums ? begin : column_of(note.end - 1, from);
        for (int c = begin; c <= std::min(last, how_.columns - 1); ++c)
          grid.at(line_of(note), c) = static_cast<int>(t);
      }
    }
    return grid;
  }

  std::string system(int64_t from) const {
    std::string out = ruler(from);
    if (low_ <= high_) {
      // Line i shows the pitches high - 2 i and high - 2 i - 1.
      Grid grid = filled(high_ - low_ + 2, from, false,
                         [&](const Note& note) { return high_ - note.pitch; });
      for (int line = 0; line <= high_ - low_; line += 2) {
        out += fmt::format("{:>6} ", pitch_name(high_ - line));
        for (int c = 0; c < how_.columns; ++c)
          out += bar_line(from, c) + cell(grid.at(line, c), grid.at(line + 1, c));
        out += '\n';
      }
    }
    if (!drums_) return out;
    Grid grid = filled(int(std::size(kDrumLines)) + 1, from, true, drum_line);
    for (int line = 0; line <= int(std::size(kDrumLines)); ++line) {
      out += fmt::format("{:>6} ", line < int(std::size(kDrumLines))
                                       ? kDrumLines[line].name
                                       : "other");
      for (int c = 0; c < how_.columns; ++c)
        out += bar_line(from, c) + drum_cell(grid.at(line, c));
      out += '\n';
    }
    return out;
  }

  static int drum_line(const Note& note) {
    int line = 0;
    for (const DrumLine& known : kDrumLines) {
      if (std::ranges::count(known.pitches, note.pitch) > 0) return line;
      ++line;
    }
    return line;
  }

  // Numbers of bars of four beats above their first column.
  std::string ruler(int64_t from) const {
    std::string out(static_cast<size_t>(how_.columns) + 16, ' ');
    const int64_t bar = int64_t{4} * music_.ticks_per_beat;
    size_t free = 0;
    for (int64_t tick = (from + bar - 1) / bar * bar; tick < music_.end; tick += bar) {
      const auto column = static_cast<size_t>(column_of(tick, from));
      if (column >= static_cast<size_t>(how_.columns)) break;
      if (column < free) continue;
      const std::string number = std::to_string(tick / bar + 1);
      out.replace(column + 7, number.size(), number);
      free = column + number.size() + 1;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  }

  // The end of the prompt takes no column: it stands between two.
  std::string bar_line(int64_t from, int column) const {
    const int64_t tick = from + column * step_;
    return how_.prompt > tick - step_ && how_.prompt <= tick && how_.prompt > 0 ? "│"
                                                                                : "";
  }

  std::string cell(int upper, int lower) const {
    if (upper == kNothing && lower == kNothing) return " ";
    const char* block = upper == kNothing ? "▄" : lower == kNothing ? "▀" : "█";
    if (!how_.colour) return block;
    if (upper != kNothing && lower != kNothing && upper != lower)
      return fmt::format("\033[38;5;{};48;5;{}m▀\033[0m", colour(upper), colour(lower));
    return fmt::format("\033[38;5;{}m{}\033[0m",
                       colour(upper != kNothing ? upper : lower), block);
  }

  std::string drum_cell(int track) const {
    if (track == kNothing) return " ";
    return how_.colour ? fmt::format("\033[38;5;{}m▪\033[0m", colour(track)) : "▪";
  }

  std::string legend() const {
    std::string out = "       ";
    for (size_t t = 0; t < music_.tracks.size(); ++t) {
      const std::string name =
          music_.tracks[t].name.empty() ? "track" : music_.tracks[t].name;
      out += how_.colour
                 ? fmt::format("\033[38;5;{}m█\033[0m {}  ", colour(int(t)), name)
                 : name + "  ";
    }
    const double sixteenths = 4.0 * double(step_) / music_.ticks_per_beat;
    return out + fmt::format("a column is {:g} sixteenth{}{}\n", sixteenths,
                             sixteenths == 1 ? "" : "s",
                             how_.prompt > 0 ? "; │ ends the prompt" : "");
  }

  static int colour(int track) {
    return kColours[static_cast<size_t>(track) % kColours.size()];
  }

  static std::string pitch_name(int pitch) {
    constexpr const char* kNames[] = {"C",  "C#", "D",  "D#", "E",  "F",
                                      "F#", "G",  "G#", "A",  "A#", "B"};
    return kNames[pitch % 12] + std::to_string(pitch / 12 - 1);
  }

  const Music& music_;
  const PianoRoll& how_;
  bool any_ = false, drums_ = false;
  int low_ = 127, high_ = 0;
  int64_t step_ = 1;
};

}  // namespace

std::string piano_roll(const Music& music, const PianoRoll& how) {
  return Roll(music, how).text();
}

}  // namespace lagwise::cli
