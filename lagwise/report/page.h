#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lagwise/report/chart.h"

namespace lagwise::report {

// What a page shows, as plain data; lagwise/report/page/*.js draws it. Text is UTF-8
// and stands on the page as it is: nothing in it is taken for HTML. Numbers that are
// not finite show as a dash.

/// A paragraph.
struct Paragraph {
  std::string text;
};

/// A card of charts, of which one shows at a time, chosen by its `tab`.
struct Charts {
  std::vector<Chart> tabs;
  bool own_colours = false;  ///< its curves are no runs: colours start anew
};

struct Column {
  std::string label;
  std::string format = "number";  ///< or text, count, bytes, seconds, percent
  int better = 0;                 ///< 1: high is good, -1: low is; 0: neither
  std::string help = "";
};

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// A number, or text where there is any; kNothing and "" are empty cells.
struct Cell {
  Cell(double number) : number(number) {}
  Cell(std::string words) : text(std::move(words)) {}
  Cell(const char* words) : text(words) {}
  double number = kNothing;
  std::string text;
};

/// Sorted by the reader. The first column names the rows; `of_runs`: by a run each.
struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  bool of_runs = false;
  std::string note = "";
};

/// What a run wrote after a prompt.
struct Sample {
  std::string run, prompt, text, note;
};

struct Samples {
  std::string title;
  std::vector<Sample> samples;
};

/// Times are beats from the start.
struct RollNote {
  double start = 0, end = 0;
  int pitch = 60, velocity = 64;
};

struct RollTrack {
  std::string name;
  int program = 0;  ///< the instrument of General MIDI
  bool drums = false;
  std::vector<RollNote> notes;
};

struct RollTempo {
  double beat = 0, beats_per_minute = 120;
};

/// One piece of music, to be seen and heard.
struct Roll {
  std::string run;         ///< whose it is, or a name such as "the original"
  double prompt_end = 0;   ///< beats; 0: no prompt
  double trained_end = 0;  ///< where the training length ends; 0: not known
  double beats = 0;        ///< its length
  double beats_per_bar = 4;
  std::vector<RollTempo> tempos = {};
  std::vector<RollTrack> tracks = {};
  std::string note = "";
  /// What a model in the page goes on from, and how; no tokens: it does not.
  std::vector<int64_t> prompt_tokens = {};
  double temperature = 1, top_p = 1;
};

/// Rolls one below the other, on one line of time: several models, one prompt.
struct Music {
  struct Piece {
    std::string title;  ///< of the prompt
    std::vector<Roll> rolls;
  };
  std::string title;
  std::vector<Piece> pieces;  ///< one shows at a time
};

using Block = std::variant<Paragraph, Charts, Table, Samples, Music>;

struct Section {
  std::string title, note;
  std::vector<Block> blocks;
};

/// A model that goes on playing in the page itself, for as long as one listens.
struct PlayOn {
  std::string run;     ///< whose it is
  std::string module;  ///< the bytes of lagwise.wasm; none: the page says what it takes
  std::string model;   ///< the bytes of an exported model
};

struct Page {
  std::string title, lede;
  std::vector<std::string>
      runs;  ///< in the order of their colours, the same everywhere
  std::vector<Section> sections;
  std::string foot;
  std::optional<PlayOn> play_on = {};
};

/// One self-contained HTML file: no network, light or dark, a phone or a desk.
std::string page_html(const Page& page);

/// The page's data: JSON that can stand inside <script>. ASCII, no '<'.
std::string page_json(const Page& page);

}  // namespace lagwise::report
