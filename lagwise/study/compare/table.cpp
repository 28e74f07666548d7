#include "lagwise/study/compare/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lagwise/core/machine.h"
#include "lagwise/study/compare/grid_text.h"
#include "lagwise/study/run_files.h"

namespace lagwise {
namespace {

/// "1.234 ± 0.012", "1.234", "-"
std::string text_of(const Spread& x) {
  if (x.count == 0) return "-";
  return std::isfinite(x.deviation)
             ? fmt::format("{:.3f} ± {:.3f}", x.mean, x.deviation)
             : fmt::format("{:.3f}", x.mean);
}

std::string whole_of(const Spread& x) {
  return x.count == 0 ? "-" : fmt::format("{:.0f}", x.mean);
}

/// Every length some row has, with how often the training length goes into it.
std::vector<double> multiples(const std::vector<CompareRow>& rows) {
  std::set<double> all;
  for (const CompareRow& row : rows)
    for (const CompareRow::Length& length : row.lengths)
      all.insert(double(length.tokens) / double(row.trained));
  return {all.begin(), all.end()};
}

const CompareRow::Length* length_at(const CompareRow& row, double multiple) {
  for (const CompareRow::Length& length : row.lengths)
    if (double(length.tokens) / double(row.trained) == multiple) return &length;
  return nullptr;
}

/// Whether the metric's name has to stand in each row: where runs of one recipe were
/// not judged by the same.
bool metrics_differ(const std::vector<CompareRow>& rows) {
  std::map<std::string, std::string> of;  // recipe -> metric
  return std::any_of(rows.begin(), rows.end(), [&](const CompareRow& row) {
    return !row.metric.empty() &&
           of.try_emplace(row.recipe, row.metric).first->second != row.metric;
  });
}

bool same(const std::vector<CompareRow>& rows, std::string CompareRow::*field) {
  return std::all_of(rows.begin(), rows.end(), [&](const CompareRow& row) {
    return row.*field == rows[0].*field;
  });
}

/// Whether rows say which folders they are of.
bool named(const std::vector<CompareRow>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const CompareRow& row) { return !row.runs.empty(); });
}

/// Whether some row knows that figure at some length.
bool known(const std::vector<CompareRow>& rows, Spread CompareRow::Length::*figure) {
  return std::any_of(rows.begin(), rows.end(), [&](const CompareRow& row) {
    return std::any_of(row.lengths.begin(), row.lengths.end(),
                       [&](const auto& length) { return (length.*figure).count > 0; });
  });
}

bool any_past(const std::vector<CompareRow>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const CompareRow& row) { return row.past != "0"; });
}

/// A column of figures at one length.
struct LengthColumn {
  std::string name;
  double multiple;  ///< of the training length
  Spread CompareRow::Length::*figure;
};

/// The loss at each length, and at the longest the restart lines; or the metric at each.
std::vector<LengthColumn> length_columns(const std::vector<CompareRow>& rows) {
  std::vector<LengthColumn> columns;
  const std::vector<double> lengths = multiples(rows);
  const auto add = [&](const char* name, double x, Spread CompareRow::Length::*figure) {
    if (known(rows, figure))
      columns.push_back({fmt::format("{} {:.4g}x", name, x), x, figure});
  };
  for (const double x : lengths) add("metric", x, &CompareRow::Length::value);
  for (const double x : lengths) add("loss", x, &CompareRow::Length::loss);
  if (lengths.empty()) return columns;
  add("restart", lengths.back(), &CompareRow::Length::restart);
  add("twin's restart", lengths.back(), &CompareRow::Length::twin);
  return columns;
}

std::vector<std::string> heading(const std::vector<CompareRow>& rows,
                                 const std::vector<LengthColumn>& lengths) {
  std::vector<std::string> cells;
  if (named(rows)) cells.push_back("run");
  if (!same(rows, &CompareRow::recipe)) cells.push_back("recipe");
  cells.insert(cells.end(), {"encoding", "attention"});
  if (any_past(rows)) cells.push_back("past");
  cells.insert(cells.end(), {"lr", "steps", "seeds", "metric"});
  for (const LengthColumn& column : lengths) cells.push_back(column.name);
  cells.insert(cells.end(),
               {"train tok/s", "decode tok/s", "memory", "parameters", ""});
  return cells;
}

std::vector<std::string> cells_of(const CompareRow& row,
                                  const std::vector<CompareRow>& rows,
                                  const std::vector<LengthColumn>& lengths) {
  std::vector<std::string> cells;
  if (named(rows)) cells.push_back(fmt::format("{}", fmt::join(row.runs, ", ")));
  if (!same(rows, &CompareRow::recipe)) cells.push_back(row.recipe);
  std::string value = text_of(row.value);
  if (metrics_differ(rows) && !row.metric.empty()) value += " " + row.metric;
  cells.insert(cells.end(), {row.encoding, row.attention});
  if (any_past(rows)) cells.push_back(row.past);
  cells.insert(cells.end(),
               {std::isfinite(row.lr) ? fmt::format("{:.4g}", row.lr) : "-",
                row.steps > 0 ? std::to_string(row.steps) : "-",
                fmt::format("{}/{}", row.done, row.asked), value});
  for (const LengthColumn& column : lengths) {
    const CompareRow::Length* length = length_at(row, column.multiple);
    cells.push_back(length ? text_of(length->*column.figure) : "-");
  }
  cells.insert(cells.end(), {whole_of(row.train_speed), whole_of(row.decode_speed),
                             row.peak_bytes > 0 ? human_bytes(row.peak_bytes) : "-",
                             row.parameters > 0 ? std::to_string(row.parameters) : "-",
                             row.state == "done" ? row.remark : row.state});
  return cells;
}

/// Takes the column out of the grid if it says the same in every one of several rows,
/// and returns what it says; else "".
std::string take_constant(Grid& grid, const std::string& name) {
  const auto at = std::find(grid[0].begin(), grid[0].end(), name) - grid[0].begin();
  if (at == std::ssize(grid[0]) || grid.size() < 3) return "";
  const std::string first = grid[1][static_cast<size_t>(at)];
  for (size_t i = 1; i < grid.size(); ++i)
    if (grid[i][static_cast<size_t>(at)] != first) return "";
  for (auto& cells : grid) cells.erase(cells.begin() + at);
  return first;
}

/// What is printed: the columns in which rows differ, and what holds for all of them.
struct Printed {
  Grid grid;
  std::string everywhere;
};

Printed printed(const CompareTable& table) {
  const std::vector<LengthColumn> lengths = length_columns(table.rows);
  Printed made{.grid = {heading(table.rows, lengths)}, .everywhere = ""};
  for (const CompareRow& row : table.rows)
    made.grid.push_back(cells_of(row, table.rows, lengths));
  for (const char* const name : {"attention", "past", "lr", "steps", "seeds"})
    if (const std::string value = take_constant(made.grid, name); !value.empty())
      made.everywhere +=
          fmt::format("{}{} {}", made.everywhere.empty() ? "" : ", ", name, value);
  take_constant(made.grid, "");
  return made;
}

/// What the column "metric" holds, and what holds in every row.
std::vector<std::string> notes_of(const CompareTable& table,
                                  const std::string& everywhere) {
  std::vector<std::string> notes;
  if (!everywhere.empty()) notes.push_back("in every row: " + everywhere);
  std::set<std::string> metrics;
  std::vector<std::string> owners;  // "metric of ...", each once
  for (const CompareRow& row : table.rows) {
    if (row.metric.empty()) continue;
    metrics.insert(row.metric);
    const std::string note = "metric of " + row.recipe + ": " + row.metric;
    if (std::find(owners.begin(), owners.end(), note) == owners.end())
      owners.push_back(note);
  }
  if (metrics_differ(table.rows)) owners.clear();
  if (metrics.size() == 1) owners = {"metric: " + *metrics.begin()};
  notes.insert(notes.end(), owners.begin(), owners.end());
  notes.insert(notes.end(), table.notes.begin(), table.notes.end());
  return notes;
}

Json spread_json(const Spread& x) {
  const auto number = [](double y) { return std::isfinite(y) ? Json(y) : Json(); };
  return {{"mean", number(x.mean)}, {"deviation", number(x.deviation)}};
}

}  // namespace

std::string table_text(const CompareTable& table) {
  const auto [grid, everywhere] = printed(table);
  std::string text = grid_text(grid);
  for (const std::string& note : notes_of(table, everywhere)) text += note + "\n";
  return text;
}

std::string table_markdown(const CompareTable& table) {
  const auto [grid, everywhere] = printed(table);
  std::string text = grid_markdown(grid);
  for (const std::string& note : notes_of(table, everywhere))
    text += "\n" + note + "\n";
  return text;
}

Json table_json(const CompareTable& table) {
  Json rows = Json::array();
  for (const CompareRow& row : table.rows) {
    Json lengths = Json::array();
    for (const CompareRow::Length& length : row.lengths)
      lengths.push_back({{"tokens", length.tokens},
                         {"loss", spread_json(length.loss)},
                         {"restart", spread_json(length.restart)},
                         {"twin", spread_json(length.twin)},
                         {"value", spread_json(length.value)}});
    rows.push_back({{"runs", row.runs},
                    {"recipe", row.recipe},
                    {"encoding", row.encoding},
                    {"attention", row.attention},
                    {"past", row.past},
                    {"geometry", row.geometry},
                    {"lr", std::isfinite(row.lr) ? Json(row.lr) : Json()},
                    {"steps", row.steps},
                    {"seeds", row.done},
                    {"seeds_asked", row.asked},
                    {"metric", row.metric},
                    {"value", spread_json(row.value)},
                    {"guess", std::isfinite(row.guess) ? Json(row.guess) : Json()},
                    {"trained", row.trained},
                    {"lengths", lengths},
                    {"train_seconds", spread_json(row.train_seconds)},
                    {"train_tokens_per_second", spread_json(row.train_speed)},
                    {"decode_tokens_per_second", spread_json(row.decode_speed)},
                    {"peak_bytes", row.peak_bytes},
                    {"parameters", row.parameters},
                    {"state", row.state},
                    {"remark", row.remark}});
  }
  return {{"rows", rows}, {"notes", table.notes}};
}

}  // namespace lagwise
