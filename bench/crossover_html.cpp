#include <fmt/format.h>

#include "bench/crossover_text.h"
#include "lagwise/report/page.h"

namespace lagwise::bench {
namespace {

std::vector<const Curve*> curves_of(const Panel& panel) {
  std::vector<const Curve*> curves = {&panel.exact};
  for (const Curve& curve : panel.linear) curves.push_back(&curve);
  return curves;
}

/// One quantity of every point, over N.
report::Chart chart_of(const Panel& panel, const std::string& tab,
                       const report::Axis& up, double (*quantity)(const Point&)) {
  report::Chart chart{tab + " over N", {"N", true, "count"}, up, {}};
  chart.tab = tab;
  for (const Curve* curve : curves_of(panel)) {
    report::Series series{curve->label, {}, {}};
    for (const Point& point : curve->points) {
      series.x.push_back(double(point.n));
      series.y.push_back(quantity(point));
    }
    chart.series.push_back(series);
  }
  return chart;
}

report::Table table_of(const Panel& panel) {
  const std::string kept = panel.direction == "step" ? "kept" : "memory";
  report::Table table{"Time and memory", {{"N", "count"}}, {}};
  for (const Curve* curve : curves_of(panel)) {
    table.columns.push_back({curve->label + ", ms"});
    table.columns.push_back({kept, "bytes"});
  }
  const std::vector<Point>& all = panel.linear.back().points;
  for (size_t i = 0; i < all.size(); ++i) {
    table.rows.push_back({double(all[i].n)});
    for (const Curve* curve : curves_of(panel)) {
      const bool has = i < curve->points.size();
      table.rows.back().push_back(has ? curve->points[i].ms : report::kNothing);
      table.rows.back().push_back(has ? double(curve->points[i].bytes)
                                      : report::kNothing);
    }
  }
  return table;
}

report::Section section_of(const Panel& panel) {
  report::Section section;
  section.title = fmt::format("{}, D = {}", panel.direction, panel.d);
  section.note = fmt::format("Linear is faster from {} (none), {} (elu1).",
                             describe(find_crossing(panel.exact, panel.linear[0])),
                             describe(find_crossing(panel.exact, panel.linear[1])));
  if (!panel.exact.stopped.empty())
    section.note += " Exact " + panel.exact.stopped + ".";
  section.blocks = {
      report::Charts{
          {chart_of(panel, "time", {"ms", true}, [](const Point& p) { return p.ms; }),
           chart_of(panel, panel.direction == "step" ? "kept" : "memory",
                    {"bytes", true, "bytes"},
                    [](const Point& p) { return double(p.bytes); })}},
      table_of(panel)};
  return section;
}

}  // namespace

std::string crossover_html(const std::vector<Panel>& panels,
                           const std::string& settings) {
  report::Page page;
  page.title = "Linear against exact attention";
  page.lede =
      "Time of one call over the length N of the sequence (for a step: of the past), 8 "
      "heads, batch 1, causal, E = D. Both axes are logarithmic: exact attention "
      "climbs "
      "with slope 2, linear attention with slope 1, and a linear step not at all. "
      "none: "
      "the bare product; elu1: with feature map and denominator.";
  for (const Panel& panel : panels) page.sections.push_back(section_of(panel));
  page.foot = settings;
  return page_html(page);
}

}  // namespace lagwise::bench
