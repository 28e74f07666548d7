#include "lagwise/cli/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "lagwise/cli/run_summary.h"
#include "lagwise/cli/versions.h"

namespace lagwise::cli {
namespace {

using report::Cell;
using report::Column;
using Json = RunRecord::Json;

/// What a run's metric came to: as `lagwise eval` judged it, or at its last evaluation
/// on the way.
struct Judged {
  std::string metric;
  double value = NAN;
};

Judged judged(const RunRecord& run) {
  if (run.summary->judged()) return {run.summary->metric, run.summary->value};
  if (run.evaluations.empty()) return {};
  const Json& last = run.evaluations.back();
  return {text_in(last, "metric"), number_in(last, "value")};
}

/// Token by token: as measured by `lagwise eval`, or while continuing music.
double writing_speed(const RunRecord& run) {
  const double measured = run.summary->decode_tokens_per_second;
  return std::isnan(measured)
             ? number_in(run.found("continuations"), "tokens_per_second")
             : measured;
}

std::string progress(const RunRecord& run) {
  const RunSummary& s = *run.summary;
  if (s.finished) return fmt::format("done, {} steps", s.step);
  return fmt::format("step {} of {}", s.step, s.recipe.train.steps);
}

/// A column of the table of runs, and what a run has in it.
struct Figure {
  Column column;
  std::function<Cell(const RunRecord&)> cell;
};

/// 0 stands for what is not known.
Cell known(int64_t number) { return number == 0 ? report::kNothing : double(number); }

bool is_empty(const Cell& cell) { return cell.text.empty() && std::isnan(cell.number); }

std::vector<Figure> metric_figures(const std::vector<RunRecord>& runs) {
  std::set<std::string> metrics;
  for (const RunRecord& run : runs) metrics.insert(judged(run).metric);
  metrics.erase("");
  std::vector<Figure> figures;
  for (const std::string& metric : metrics) {
    const int better = metric.find("accuracy") != std::string::npos ? 1 : -1;
    figures.push_back({{metric, better > 0 ? "percent" : "number", better,
                        "the task's metric, as last evaluated"},
                       [metric](const RunRecord& run) -> Cell {
                         const Judged found = judged(run);
                         return found.metric == metric ? found.value : NAN;
                       }});
  }
  return figures;
}

std::vector<Figure> figures_of(const std::vector<RunRecord>& runs) {
  std::vector<Figure> figures = metric_figures(runs);
  for (const int64_t k : {1, 2, 4})
    figures.push_back({{fmt::format("loss at {}×", k), "number", -1,
                        fmt::format("nats per token from {} to {} training lengths",
                                    0.5 * static_cast<double>(k), k)},
                       [k](const RunRecord& r) { return Cell(loss_at(r, k)); }});
  figures.push_back(
      {{"restart at 4×", "number", -1,
        "the same tokens seen through windows of the training length"},
       [](const RunRecord& r) { return Cell(loss_at(r, 4, "restart")); }});
  figures.push_back(
      {{"train tok/s", "count", 1, "tokens per second of training"},
       [](const RunRecord& r) { return Cell(r.summary->train_tokens_per_second); }});
  figures.push_back({{"write tok/s", "count", 1, "tokens per second of generation"},
                     [](const RunRecord& r) { return Cell(writing_speed(r)); }});
  figures.push_back({{"parameters", "count"},
                     [](const RunRecord& r) { return known(r.summary->parameters); }});
  figures.push_back({{"peak memory", "bytes", -1, "of the process, in training"},
                     [](const RunRecord& r) { return known(r.summary->peak_bytes); }});
  figures.push_back(
      {{"state", "text"}, [](const RunRecord& r) { return Cell(progress(r)); }});
  figures.push_back({{"encoding", "text"}, [](const RunRecord& r) {
                       return Cell(r.summary->recipe.model.encoding);
                     }});
  figures.push_back({{"attention", "text"}, [](const RunRecord& r) {
                       return Cell(r.summary->recipe.model.attention);
                     }});
  return figures;
}

std::string lede(const std::vector<RunRecord>& runs) {
  int64_t training = 0;
  std::set<std::string> tasks;
  std::set<int64_t> lengths;
  for (const RunRecord& run : runs) {
    training += run.summary->finished ? 0 : 1;
    tasks.insert(run.summary->recipe.data.task);
    lengths.insert(run.summary->recipe.data.length);
  }
  std::string text = fmt::format("{} {} on {}, trained on windows of {} tokens.",
                                 runs.size(), runs.size() == 1 ? "run" : "runs",
                                 fmt::join(tasks, ", "), fmt::join(lengths, ", "));
  if (training) text += fmt::format(" {} still training.", training);
  return text;
}

}  // namespace

double loss_at(const RunRecord& run, int64_t k, bool restart) {
  for (const RunSummary::Length& length : run.summary->lengths)
    if (length.tokens == k * run.summary->trained)
      return restart ? length.restart : length.loss;
  return NAN;
}

report::Section runs_section(const std::vector<RunRecord>& runs) {
  report::Table table{"Figures", {{"run", "text"}}, {}, true, ""};
  for (const RunRecord& run : runs) table.rows.push_back({run.name});
  table.note = "A click on a column sorts by it; the best of each is in colour.";
  for (const Figure& figure : figures_of(runs)) {
    std::vector<Cell> cells;
    for (const RunRecord& run : runs) cells.push_back(figure.cell(run));
    if (std::all_of(cells.begin(), cells.end(), is_empty)) continue;
    const std::string& text = cells[0].text;
    const bool same = std::all_of(cells.begin(), cells.end(), [&](const Cell& cell) {
      return !text.empty() && cell.text == text;
    });
    if (same && runs.size() > 1) {  // a column of one word says it once
      table.note += fmt::format(" All have the {} {}.", figure.column.label, text);
      continue;
    }
    table.columns.push_back(figure.column);
    for (size_t i = 0; i < runs.size(); ++i) table.rows[i].push_back(cells[i]);
  }
  return {"Runs", "", {table}};
}

report::Page report_page(const std::vector<RunRecord>& runs) {
  report::Page page{"lagwise report", lede(runs), {}, {}, ""};
  if (runs.size() == 1) page.title = runs[0].name;
  for (const RunRecord& run : runs) page.runs.push_back(run.name);
  for (const auto section : {runs_section, length_section, music_section,
                             training_section, kernels_section, samples_section})
    if (report::Section made = section(runs); !made.blocks.empty())
      page.sections.push_back(std::move(made));
  page.foot = "Made by " + version_line() + ".";
  return page;
}

}  // namespace lagwise::cli
