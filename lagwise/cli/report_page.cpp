#include "lagwise/cli/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "lagwise/cli/versions.h"

namespace lagwise::cli {
namespace {

using report::Cell;
using report::Column;
using Json = RunRecord::Json;

/// What a run's metric came to: of the split judged by `lagwise eval`, or at its last
/// evaluation on the way.
struct Judged {
  std::string metric, split;
  double value = NAN;
};

Judged judged(const RunRecord& run) {
  Json from = run.found("metric");
  if (from.is_null() && !run.evaluations.empty()) from = run.evaluations.back();
  if (!from.is_object() || !from.contains("metric") || !from["metric"].is_string())
    return {};
  return {from["metric"], from.value("split", ""), number_in(from, "value")};
}

double median_speed(const RunRecord& run) {
  std::vector<double> speeds;
  for (const Json& line : run.training)
    if (const double x = number_in(line, "tokens_per_second"); x > 0)
      speeds.push_back(x);
  if (speeds.empty()) return NAN;
  std::nth_element(speeds.begin(), speeds.begin() + long(speeds.size() / 2),
                   speeds.end());
  return speeds[speeds.size() / 2];
}

double writing_speed(const RunRecord& run) {
  double best = NAN;
  for (const auto& [name, card] : run.cards)
    best = std::fmax(best, number_in(card, "tokens_per_second"));
  return best;
}

std::string progress(const RunRecord& run) {
  if (!run.end.is_null()) return fmt::format("done, {} steps", run.step());
  return fmt::format("step {} of {}", run.step(), run.steps());
}

/// A column of the table of runs, and what a run has in it.
struct Figure {
  Column column;
  std::function<Cell(const RunRecord&)> cell;
};

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
    figures.push_back(
        {{fmt::format("loss at {}×", k), "number", -1,
          fmt::format("nats per token from {} to {} training lengths", k / 2.0, k)},
         [k](const RunRecord& r) { return Cell(loss_at(r, k)); }});
  figures.push_back(
      {{"restart at 4×", "number", -1,
        "the same tokens seen through windows of the training length"},
       [](const RunRecord& r) { return Cell(loss_at(r, 4, "restart")); }});
  figures.push_back({{"train tok/s", "count", 1, "median over the run"},
                     [](const RunRecord& r) { return Cell(median_speed(r)); }});
  figures.push_back({{"write tok/s", "count", 1, "when generating"},
                     [](const RunRecord& r) { return Cell(writing_speed(r)); }});
  figures.push_back({{"parameters", "count"}, [](const RunRecord& r) {
                       return Cell(number_in(r.facts, "parameters"));
                     }});
  figures.push_back(
      {{"peak memory", "bytes", -1, "of the process, in training"},
       [](const RunRecord& r) { return Cell(number_in(r.end, "peak_bytes")); }});
  figures.push_back(
      {{"state", "text"}, [](const RunRecord& r) { return Cell(progress(r)); }});
  for (const char* key : {"encoding", "attention"})
    figures.push_back({{key, "text"}, [key](const RunRecord& r) {
                         return Cell(r.word(std::string("model.") + key));
                       }});
  return figures;
}

std::string lede(const std::vector<RunRecord>& runs) {
  const auto training = std::count_if(
      runs.begin(), runs.end(), [](const auto& run) { return run.end.is_null(); });
  std::set<std::string> tasks, lengths;
  for (const RunRecord& run : runs) {
    tasks.insert(run.word("data.task", "an unnamed task"));
    lengths.insert(run.word("data.length", "an unknown number of"));
  }
  std::string text = fmt::format("{} {} on {}, trained on windows of {} tokens.",
                                 runs.size(), runs.size() == 1 ? "run" : "runs",
                                 fmt::join(tasks, ", "), fmt::join(lengths, ", "));
  if (training) text += fmt::format(" {} still training.", training);
  return text;
}

}  // namespace

double loss_at(const RunRecord& run, int64_t k, const std::string& key) {
  const Json& found = run.found("position");
  const double trained = number_in(found, "trained");
  double sum = 0, width = 0;
  if (!found.contains("buckets")) return NAN;
  for (const Json& bucket : found["buckets"]) {
    const double begin = number_in(bucket, "begin"), end = number_in(bucket, "end");
    const double loss = number_in(bucket, key);
    if (!(2 * begin >= double(k) * trained && end <= double(k) * trained)) continue;
    if (std::isnan(loss)) continue;
    sum += loss * (end - begin), width += end - begin;
  }
  return width > 0 ? sum / width : NAN;
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
  for (const auto section :
       {runs_section, length_section, training_section, samples_section})
    if (report::Section made = section(runs); !made.blocks.empty())
      page.sections.push_back(std::move(made));
  page.foot = "Made by " + version_line() + ".";
  for (const RunRecord& run : runs)
    for (const std::string& file : run.unread)
      page.foot += " Left out, as it is no JSON: " + file + ".";
  return page;
}

}  // namespace lagwise::cli
