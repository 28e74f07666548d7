#include "bench/crossover_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lagwise/core/machine.h"

namespace lagwise::bench {
namespace {

constexpr int kChartColumns = 57, kChartRows = 13;

/// Three digits: "0.0127", "4.51", "1204".
std::string milliseconds(double ms) {
  if (ms >= 1000) return fmt::format("{:.0f}", ms);
  return fmt::format("{:#.3g}", ms);
}

std::string time_cell(const Curve& curve, size_t i) {
  return i < curve.points.size() ? milliseconds(curve.points[i].ms) : "-";
}

std::string memory_cell(const Curve& curve, size_t i) {
  return i < curve.points.size() ? human_bytes(curve.points[i].bytes) : "-";
}

std::string panel_table(const Panel& panel) {
  const Curve &none = panel.linear[0], &elu1 = panel.linear[1];
  const char* memory = panel.direction == "step" ? "kept of the past" : "extra memory";
  std::string text = fmt::format("\n{}, D = E = {}\n", panel.direction, panel.d);
  text += fmt::format("{:>7} | {:^31} | {:^21}\n", "", "time, ms", memory);
  text += fmt::format("{:>7} | {:>9} {:>10} {:>10} | {:>10} {:>10}\n", "N", "exact",
                      "lin. none", "lin. elu1", "exact", "lin. elu1");
  for (size_t i = 0; i < elu1.points.size(); ++i) {
    text +=
        fmt::format("{:>7} | {:>9} {:>10} {:>10} | {:>10} {:>10}\n", elu1.points[i].n,
                    time_cell(panel.exact, i), time_cell(none, i), time_cell(elu1, i),
                    memory_cell(panel.exact, i), memory_cell(elu1, i));
  }
  text += fmt::format("linear is faster from: {} (none), {} (elu1)\n",
                      describe(find_crossing(panel.exact, none)),
                      describe(find_crossing(panel.exact, elu1)));
  if (!panel.exact.stopped.empty()) {
    text += fmt::format("exact {}\n", panel.exact.stopped);
  }
  return text;
}

/// From a quantity to a place on a logarithmic axis of `places` places.
struct LogAxis {
  double low, high;
  int places;
  int place(double x) const {
    const double share = std::log(x / low) / std::log(high / low);
    return static_cast<int>(std::lround(share * (places - 1)));
  }
};

LogAxis time_axis(const Panel& panel) {
  double low = 1e300, high = 0;
  for (const Curve* curve : {&panel.exact, &panel.linear[1]}) {
    for (const Point& point : curve->points) {
      low = std::min(low, point.ms);
      high = std::max(high, point.ms);
    }
  }
  return {low, std::max(high, low * 1.01), kChartRows};
}

using Canvas = std::vector<std::string>;  // top row first

void plot(Canvas& canvas, const Curve& curve, char mark, const LogAxis& across,
          const LogAxis& up) {
  const auto put = [&](double n, double ms) {
    char& cell = canvas[size_t(kChartRows - 1 - up.place(ms))][size_t(across.place(n))];
    cell = cell == ' ' || cell == mark ? mark : '*';
  };
  for (size_t i = 0; i < curve.points.size(); ++i) {
    const Point& here = curve.points[i];
    put(double(here.n), here.ms);
    if (i + 1 == curve.points.size()) break;
    const Point& next = curve.points[i + 1];
    const int steps = across.place(double(next.n)) - across.place(double(here.n));
    for (int s = 1; s < steps; ++s) {
      const double share = double(s) / steps;
      put(double(here.n) * std::pow(double(next.n) / double(here.n), share),
          here.ms * std::pow(next.ms / here.ms, share));
    }
  }
}

std::string length_labels(const Curve& curve, const LogAxis& across) {
  std::string line(kChartColumns + 8, ' ');
  for (const Point& point : curve.points) {
    const std::string label = std::to_string(point.n);
    line.replace(size_t(across.place(double(point.n))), label.size(), label);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

}  // namespace

std::string crossover_table(const std::vector<Panel>& panels) {
  std::string text;
  for (const Panel& panel : panels) text += panel_table(panel);
  return text;
}

std::string crossover_chart(const Panel& panel) {
  const Curve& linear = panel.linear[1];
  const LogAxis across = {
      double(linear.points.front().n),
      std::max(double(linear.points.back().n), double(linear.points.front().n) * 1.01),
      kChartColumns};
  const LogAxis up = time_axis(panel);
  Canvas canvas(kChartRows, std::string(kChartColumns, ' '));
  plot(canvas, panel.exact, 'x', across, up);
  plot(canvas, linear, 'o', across, up);
  std::string text = fmt::format("\n{}, D = {}: ms over N (x exact, o linear elu1)\n",
                                 panel.direction, panel.d);
  for (int row = 0; row < kChartRows; ++row) {
    const double share = double(kChartRows - 1 - row) / (kChartRows - 1);
    const double ms = up.low * std::pow(up.high / up.low, share);
    const std::string label = row % 4 == 0 ? milliseconds(ms) : "";
    text += fmt::format("{:>8} | {}\n", label, canvas[size_t(row)]);
  }
  text += fmt::format("{:>8} +-{}\n", "", std::string(kChartColumns, '-'));
  text += fmt::format("{:>8}   {}\n", "N", length_labels(linear, across));
  return text;
}

}  // namespace lagwise::bench
