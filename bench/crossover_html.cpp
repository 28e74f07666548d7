#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "bench/crossover_text.h"

namespace lagwise::bench {
namespace {

// Colours of the curves: exact, linear none, linear elu1; told apart by the
// dashes too, for readers who do not see colours.
constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>lagwise: linear against exact attention</title>
<style>
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --grid: #d8dce1;
  --exact: #c0392b; --none: #2471a3; --elu1: #1e8449; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --paper: #14171a;
  --grid: #343a41; --exact: #ff7b6b; --none: #6cb6ff; --elu1: #5fd38d; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 46rem; margin: 0 auto; padding: 1rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 15px; }
.grid { stroke: var(--grid); } .curve { fill: none; stroke-width: 2.5; }
.exact { stroke: var(--exact); } .none { stroke: var(--none); stroke-dasharray: 7 4; }
.elu1 { stroke: var(--elu1); stroke-dasharray: 2 4; stroke-linecap: round; }
.table { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.9rem; }
th, td { text-align: right; padding: 0.2rem 0.6rem; border-bottom: 1px solid var(--grid);
  font-variant-numeric: tabular-nums; white-space: nowrap; }
</style></head><body>
<h1>Linear against exact attention</h1>
<p>Time of one call over the length N of the sequence (for a step: of the past), 8 heads,
batch 1, causal, E = D. Both axes are logarithmic: exact attention climbs with slope 2,
linear attention with slope 1, and a linear step not at all.
<em>none</em>: the bare product; <em>elu1</em>: with feature map and denominator.</p>
)";

constexpr std::string_view kClasses[] = {"exact", "none", "elu1"};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

/// The picture's own coordinates: the plot spans 70..590 across and 20..300 down.
struct Frame {
  double n_low, n_high, ms_low, ms_high;
  double x(double n) const {
    return 70 + 520 * std::log(n / n_low) / std::log(n_high / n_low);
  }
  double y(double ms) const {
    return 300 - 280 * std::log(ms / ms_low) / std::log(ms_high / ms_low);
  }
};

std::vector<const Curve*> curves_of(const Panel& panel) {
  std::vector<const Curve*> curves = {&panel.exact};
  for (const Curve& curve : panel.linear) curves.push_back(&curve);
  return curves;
}

/// Times are framed by whole powers of ten.
Frame frame_of(const Panel& panel) {
  double n_low = 1e300, n_high = 0, low = 1e300, high = 0;
  for (const Curve* curve : curves_of(panel)) {
    for (const Point& point : curve->points) {
      n_low = std::min(n_low, double(point.n)),
      n_high = std::max(n_high, double(point.n));
      low = std::min(low, point.ms), high = std::max(high, point.ms);
    }
  }
  return {n_low, std::max(n_high, 1.01 * n_low),
          std::pow(10, std::floor(std::log10(low))),
          std::pow(10, std::ceil(std::log10(high) + 1e-9))};
}

std::string grid(const Panel& panel, const Frame& frame) {
  std::string svg;
  for (double ms = frame.ms_low; ms <= frame.ms_high * 1.001; ms *= 10) {
    svg += fmt::format(
        "<line class='grid' x1='70' x2='590' y1='{0:.1f}' y2='{0:.1f}'/>"
        "<text x='62' y='{1:.1f}' text-anchor='end'>{2:g} ms</text>\n",
        frame.y(ms), frame.y(ms) + 5, ms);
  }
  for (const Point& point : panel.linear.back().points) {
    svg += fmt::format(
        "<line class='grid' y1='20' y2='300' x1='{0:.1f}' x2='{0:.1f}'/>"
        "<text x='{0:.1f}' y='320' text-anchor='middle'>{1}</text>\n",
        frame.x(double(point.n)), point.n);
  }
  return svg;
}

std::string picture(const Panel& panel) {
  const Frame frame = frame_of(panel);
  std::string svg = fmt::format(
      "<svg viewBox='0 0 620 350' role='img' aria-label='{}, D = {}: time over N'>\n{}",
      panel.direction, panel.d, grid(panel, frame));
  const auto curves = curves_of(panel);
  for (size_t i = 0; i < curves.size(); ++i) {
    std::string path;
    for (const Point& point : curves[i]->points) {
      path +=
          fmt::format("{:.1f},{:.1f} ", frame.x(double(point.n)), frame.y(point.ms));
    }
    svg += fmt::format("<polyline class='curve {}' points='{}'/>\n", kClasses[i], path);
    const int x = 90 + 170 * int(i);
    svg += fmt::format(
        "<line class='curve {0}' x1='{1}' x2='{2}' y1='340' y2='340'/>"
        "<text x='{3}' y='345'>{4}</text>\n",
        kClasses[i], x, x + 30, x + 38, curves[i]->label);
  }
  return svg + "</svg>\n";
}

std::string cells(const Curve& curve, size_t i) {
  if (i >= curve.points.size()) return "<td>-</td><td>-</td>";
  return fmt::format("<td>{:.3g}</td><td>{}</td>", curve.points[i].ms,
                     human_bytes(curve.points[i].bytes));
}

std::string table(const Panel& panel) {
  std::string html = "<div class='table'><table><tr><th>N</th>";
  for (const Curve* curve : curves_of(panel)) {
    html += fmt::format("<th>{}, ms</th><th>{}</th>", curve->label,
                        panel.direction == "step" ? "kept" : "memory");
  }
  html += "</tr>\n";
  for (size_t i = 0; i < panel.linear.back().points.size(); ++i) {
    html += fmt::format("<tr><td>{}</td>", panel.linear.back().points[i].n);
    for (const Curve* curve : curves_of(panel)) html += cells(*curve, i);
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string section(const Panel& panel) {
  std::string html = fmt::format("<h2>{}, D = {}</h2>\n<p>Linear is faster from ",
                                 panel.direction, panel.d);
  html += fmt::format("<strong>{}</strong> (none), <strong>{}</strong> (elu1).",
                      describe(find_crossing(panel.exact, panel.linear[0])),
                      describe(find_crossing(panel.exact, panel.linear[1])));
  if (!panel.exact.stopped.empty()) html += " Exact " + panel.exact.stopped + ".";
  return html + "</p>\n" + picture(panel) + table(panel);
}

}  // namespace

std::string crossover_html(const std::vector<Panel>& panels,
                           const std::string& settings) {
  std::string html(kHead);
  for (const Panel& panel : panels) html += section(panel);
  return html + "<p><small>" + escaped(settings) + "</small></p>\n</body></html>\n";
}

}  // namespace lagwise::bench
