// What runs cost and what came of them, one line each, whatever they were trained on.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lagwise/core/machine.h"
#include "lagwise/study/compare/grid_text.h"
#include "lagwise/study/compare/table.h"

namespace lagwise {
namespace {

/// "0.9953", "1.234 ± 0.012", "-": metrics of any size in four digits.
std::string figure(const Spread& x) {
  if (x.count == 0) return "-";
  return std::isfinite(x.deviation)
             ? fmt::format("{:.4g} ± {:.2g}", x.mean, x.deviation)
             : fmt::format("{:.4g}", x.mean);
}

std::string minutes(const Spread& seconds) {
  return seconds.count == 0 ? "-" : fmt::format("{:.1f}", seconds.mean / 60);
}

std::vector<std::string> outcome_of(const CompareRow& row) {
  return {fmt::format("{}", fmt::join(row.runs, ", ")),
          row.recipe,
          row.parameters > 0 ? std::to_string(row.parameters) : "-",
          row.steps > 0 ? std::to_string(row.steps) : "-",
          minutes(row.train_seconds),
          row.peak_bytes > 0 ? human_bytes(row.peak_bytes) : "-",
          row.metric.empty() ? "-" : row.metric,
          figure(row.value),
          std::isfinite(row.guess) ? fmt::format("{:.4g}", row.guess) : "-",
          row.state == "done" ? row.remark : row.state};
}

Grid outcome_grid(const CompareTable& table) {
  Grid grid = {{"run", "recipe", "parameters", "steps", "minutes", "memory", "metric",
                "value", "blind guess", ""}};
  for (const CompareRow& row : table.rows) grid.push_back(outcome_of(row));
  const bool remarks = std::any_of(grid.begin(), grid.end(), [](const auto& cells) {
    return !cells.back().empty();
  });
  if (!remarks)
    for (auto& cells : grid) cells.pop_back();
  return grid;
}

}  // namespace

std::string outcome_text(const CompareTable& table) {
  std::string text = grid_text(outcome_grid(table));
  for (const std::string& note : table.notes) text += note + "\n";
  return text;
}

std::string outcome_markdown(const CompareTable& table) {
  std::string text = grid_markdown(outcome_grid(table));
  for (const std::string& note : table.notes) text += "\n" + note + "\n";
  return text;
}

}  // namespace lagwise
