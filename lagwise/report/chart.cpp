#include "lagwise/report/chart.h"

#include <array>
#include <cstdio>
#include <cstring>

#include "lagwise/report/chart_scale.h"

namespace lagwise::report {
namespace {

using Canvas = std::vector<std::string>;  // top row first

struct Place {
  int row, column;
};

Place cell_of(double x, double y, const Scale& across, const Scale& up, int columns,
              int rows) {
  const auto place = [](double share, int places) {
    return static_cast<int>(std::lround(share * (places - 1)));
  };
  return {rows - 1 - place(up.share(y), rows), place(across.share(x), columns)};
}

void plot(const Series& series, char mark, const Scale& across, const Scale& up,
          Canvas& canvas) {
  const int columns = int(canvas[0].size()), rows = int(canvas.size());
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (!std::isfinite(series.y[i]) || (up.logarithmic && series.y[i] <= 0)) continue;
    const Place c = cell_of(series.x[i], series.y[i], across, up, columns, rows);
    if (c.row < 0 || c.row >= rows || c.column < 0 || c.column >= columns) continue;
    char& at = canvas[size_t(c.row)][size_t(c.column)];
    at = at == ' ' || at == '|' || at == mark ? mark : '*';
  }
}

std::string padded(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

/// The numbers under a chart, each centred under its column where there is room.
std::string tick_line(const Scale& across, int columns) {
  std::string line(size_t(columns) + 8, ' ');
  size_t free = 0;
  for (const double tick : across.ticks(4)) {
    const std::string text = short_number(tick);
    const auto at = size_t(std::lround(across.share(tick) * (columns - 1)));
    if (at < free || at + text.size() > line.size()) continue;
    line.replace(at, text.size(), text);
    free = at + text.size() + 1;
  }
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

}  // namespace

std::string short_number(double x) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", std::abs(x) < 1e-12 ? 0.0 : x);
  return text.data();
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string terminal_chart(const Chart& chart, int columns, int rows) {
  const Scale across = scale_of(chart, true), up = scale_of(chart, false);
  Canvas canvas(size_t(rows), std::string(size_t(columns), ' '));
  if (chart.mark > across.low && chart.mark < across.high) {
    const auto column = size_t(std::lround(across.share(chart.mark) * (columns - 1)));
    for (std::string& row : canvas) row[column] = '|';
  }
  std::string text = chart.title + "\n";
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const char mark = char('a' + i % 26);
    plot(chart.series[i], mark, across, up, canvas);
    text += (i ? ", " : "  ") + std::string(1, mark) + " " + chart.series[i].label;
  }
  if (chart.mark > 0 && !chart.mark_label.empty()) text += ", | " + chart.mark_label;
  text += '\n';
  for (int row = 0; row < rows; ++row) {
    const double y = up.at(double(rows - 1 - row) / (rows - 1));
    text += padded(row % 4 == 0 ? short_number(y) : "", 10) + " | " +
            canvas[size_t(row)] + "\n";
  }
  text += std::string(11, ' ') + "+-" + std::string(size_t(columns), '-') + "\n";
  return text + padded(chart.across.label, 10) + "   " + tick_line(across, columns) +
         "\n";
}

}  // namespace lagwise::report
