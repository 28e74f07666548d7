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
};

struct Axis {
  std::string label;
  bool logarithmic = false;  ///< every number on it is then positive
};

struct Chart {
  std::string title;
  Axis across, up;
  std::vector<Series> series;
  double mark = 0;  ///< a vertical line there, if positive: the training length
  std::string mark_label = "";
};

/// The chart in characters, one letter a series (a, b, c, ...; * where they meet).
std::string terminal_chart(const Chart& chart, int columns = 64, int rows = 17);

/// The chart as an inline <svg>, for `html_page`.
std::string svg_chart(const Chart& chart);

/// One self-contained page, light or dark as the reader's system is; no network.
/// `body` is HTML.
std::string html_page(std::string_view title, std::string_view body);

/// Text as HTML shows it.
std::string escaped(std::string_view text);

/// Four digits at most: "0.0127", "4.51", "1e+06".
std::string short_number(double x);

}  // namespace lagwise::report
