#include <array>
#include <cstdio>

#include "lagwise/report/chart.h"
#include "lagwise/report/chart_scale.h"

namespace lagwise::report {
namespace {

// Curves are told apart by colour and by dashes, for readers who do not see colours.
constexpr std::string_view kStyle = R"(<style>
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --grid: #d8dce1;
  --c0: #2471a3; --c1: #c0392b; --c2: #1e8449; --c3: #9a5b00; --c4: #6c3483; --c5: #117a65; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --paper: #14171a;
  --grid: #343a41; --c0: #6cb6ff; --c1: #ff7b6b; --c2: #5fd38d; --c3: #e5b567;
  --c4: #c39bd3; --c5: #76d7c4; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 46rem; margin: 0 auto; padding: 1rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 14px; }
.grid { stroke: var(--grid); } .mark { stroke: var(--ink); stroke-dasharray: 3 3; }
.curve { fill: none; stroke-width: 2; } .band { opacity: 0.15; }
.table { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.9rem; }
th, td { text-align: right; padding: 0.2rem 0.6rem; border-bottom: 1px solid var(--grid);
  font-variant-numeric: tabular-nums; white-space: nowrap; }
</style>)";

constexpr std::array kDashes = {"none", "7 4", "2 4", "9 3 2 3", "1 3", "12 4"};

std::string number(double x) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", x);
  return text.data();
}

/// The picture's own coordinates: the plot spans 70..590 across and 20..300 down.
struct Frame {
  Scale across, up;
  std::string x(double v) const { return number(70 + 520 * across.share(v)); }
  std::string y(double v) const {
    return number(300 - 280 * std::clamp(up.share(v), -0.05, 1.05));
  }
};

std::string grid(const Frame& f) {
  std::string svg;
  for (const double tick : f.up.ticks(5))
    svg += "<line class='grid' x1='70' x2='590' y1='" + f.y(tick) + "' y2='" +
           f.y(tick) + "'/><text x='62' y='" + f.y(tick) + "' text-anchor='end'>" +
           short_number(tick) + "</text>\n";
  for (const double tick : f.across.ticks(5))
    svg += "<line class='grid' y1='20' y2='300' x1='" + f.x(tick) + "' x2='" +
           f.x(tick) + "'/><text x='" + f.x(tick) + "' y='320' text-anchor='middle'>" +
           short_number(tick) + "</text>\n";
  return svg;
}

std::string points(const Frame& f, const std::vector<double>& x,
                   const std::vector<double>& y, bool backwards = false) {
  std::string text;
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t at = backwards ? x.size() - 1 - i : i;
    if (!std::isfinite(y[at]) || (f.up.logarithmic && y[at] <= 0)) continue;
    text += f.x(x[at]) + "," + f.y(y[at]) + " ";
  }
  return text;
}

std::string curve(const Frame& f, const Series& s, size_t i) {
  const std::string colour = "var(--c" + std::to_string(i % 6) + ")";
  std::string svg;
  if (!s.low.empty())
    svg += "<polygon class='band' fill='" + colour + "' points='" +
           points(f, s.x, s.low) + points(f, s.x, s.high, true) + "'/>\n";
  const std::string style =
      "stroke='" + colour + "' stroke-dasharray='" + kDashes[i % kDashes.size()] + "'";
  svg +=
      "<polyline class='curve' " + style + " points='" + points(f, s.x, s.y) + "'/>\n";
  const auto column = double(i % 3), row = double(i / 3);
  const std::string y = number(358 + 20 * row);
  return svg + "<line class='curve' " + style + " x1='" + number(70 + 175 * column) +
         "' x2='" + number(100 + 175 * column) + "' y1='" + y + "' y2='" + y +
         "'/><text x='" + number(106 + 175 * column) + "' y='" +
         number(363 + 20 * row) + "'>" + escaped(s.label) + "</text>\n";
}

}  // namespace

std::string svg_chart(const Chart& chart) {
  const Frame f = {scale_of(chart, true), scale_of(chart, false)};
  const size_t legend = (chart.series.size() + 2) / 3;
  std::string svg = "<svg viewBox='0 0 620 " + number(355 + 20 * double(legend)) +
                    "' role='img' aria-label=\"" + escaped(chart.title) + "\">\n" +
                    grid(f);
  if (chart.mark > f.across.low && chart.mark < f.across.high)
    svg += "<line class='mark' y1='20' y2='300' x1='" + f.x(chart.mark) + "' x2='" +
           f.x(chart.mark) + "'/><text x='" + f.x(chart.mark) +
           "' y='14' text-anchor='middle'>" + escaped(chart.mark_label) + "</text>\n";
  svg += "<text x='330' y='340' text-anchor='middle'>" + escaped(chart.across.label) +
         "</text>\n";
  for (size_t i = 0; i < chart.series.size(); ++i) svg += curve(f, chart.series[i], i);
  return "<h2>" + escaped(chart.title) + "</h2>\n" + svg + "</svg>\n";
}

std::string html_page(std::string_view title, std::string_view body) {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta "
         "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escaped(title) + "</title>\n" + std::string(kStyle) + "</head><body>\n<h1>" +
         escaped(title) + "</h1>\n" + std::string(body) + "</body></html>\n";
}

}  // namespace lagwise::report
