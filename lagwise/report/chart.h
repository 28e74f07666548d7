#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lagwise::report {

/// A curve through (x, y), with a band from low to high where those are given.
struct Series {
  std::string label;
  std::vector<double> x, y;
  std::vector<double> low = {}, high = {};
  std::string of = "";  ///< whose colour and place in the legend it shares; empty: own
  bool dashed = false;
};

struct Axis {
  std::string label;
  bool logarithmic = false;       ///< every number on it is then positive
  std::string format = "number";  ///< or count, bytes, seconds, percent: on a page
};

struct Chart {
  std::string title;
  Axis across, up;
  std::vector<Series> series;
  double mark = 0;  ///< a vertical line there, if positive: the training length
  std::string mark_label = "";
  std::string tab = "";  ///< its name among charts in one card of a page
  std::string note = "";
  bool clip = false;  ///< a page frames what comes after a steep beginning
};

/// The chart in characters, one letter a series (a, b, c, ...; * where they meet).
std::string terminal_chart(const Chart& chart, int columns = 64, int rows = 17);

/// Text as HTML shows it.
std::string escaped(std::string_view text);

/// Four digits at most: "0.0127", "4.51", "1e+06".
std::string short_number(double x);

}  // namespace lagwise::report
