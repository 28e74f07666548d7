#include "lagwise/study/report/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "lagwise/study/run_files.h"
#include "lagwise/study/run_summary.h"
#include "lagwise/study/twins.h"
#include "lagwise/study/versions.h"

namespace lagwise {
namespace {

using report::Cell;
using report::Column;
/// What a run's metric came to, and on what: figures on different things stand in
/// different columns, where they do not compete.
struct Judged {
  std::string metric, on;
  double value = NAN;

  std::string label() const { return metric + " (" + on + ")"; }
};

constexpr const char* kInTraining = "valid, in training";

/// As `lagwise eval` judged it, and at its last evaluation on the way. One that is not
/// there has no metric.
Judged judged_by_eval(const RunRecord& run) {
  return {run.summary.metric, run.summary.judged_on(), run.summary.value};
}
Judged judged_in_training(const RunRecord& run) {
  if (run.evaluations.empty()) return {};
  const Json& last = run.evaluations.back();
  return {text_in(last, "metric"), kInTraining, number_in(last, "value")};
}

/// A column of the table of runs, and what a run has in it.
struct Figure {
  Column column;
  std::function<Cell(const RunRecord&)> cell;
};

/// 0 stands for what is not known.
Cell known(int64_t number) { return number == 0 ? report::kNothing : double(number); }

bool is_empty(const Cell& cell) { return cell.text.empty() && std::isnan(cell.number); }

/// Columns for what the runs were judged on; for evaluations on the way where some run
/// has no other.
std::vector<Figure> metric_figures(const std::vector<RunRecord>& runs) {
  std::map<std::string, std::string> columns;  // label -> metric
  const auto add = [&](const Judged& found) {
    if (!found.metric.empty()) columns[found.label()] = found.metric;
  };
  for (const RunRecord& run : runs) add(judged_by_eval(run));
  if (!std::all_of(runs.begin(), runs.end(),
                   [](const RunRecord& run) { return run.summary.judged(); }))
    for (const RunRecord& run : runs) add(judged_in_training(run));
  std::vector<Figure> figures;
  for (const auto& [label, metric] : columns) {
    const int better = metric.find("accuracy") != std::string::npos ? 1 : -1;
    figures.push_back(
        {{label, better > 0 ? "percent" : "number", better,
          "the task's metric, and what it is of"},
         [label = label](const RunRecord& run) -> Cell {
           for (const Judged& found : {judged_by_eval(run), judged_in_training(run)})
             if (found.label() == label) return found.value;
           return NAN;
         }});
  }
  return figures;
}

/// The run without a past that shares all else with one that has it, the seed too.
/// Null: there is none.
const RunRecord* twin_of(const RunRecord& run, const std::vector<RunRecord>& runs) {
  const Recipe& own = run.summary.recipe;
  if (!trains_with_past(own)) return nullptr;
  for (const RunRecord& other : runs) {
    const Recipe& recipe = other.summary.recipe;
    if (!trains_with_past(recipe) && recipe.train.seed == own.train.seed &&
        twin_key(recipe) == twin_key(own))
      return &other;
  }
  return nullptr;
}

/// Loss by position at some training lengths, on each split that a run was judged on.
std::vector<Figure> length_figures(const std::vector<RunRecord>& runs) {
  std::set<std::string> splits;
  for (const RunRecord& run : runs)
    if (!run.summary.lengths.empty()) splits.insert(run.summary.split);
  std::vector<Figure> figures;
  for (const std::string& split : splits) {
    const auto add = [&](std::string label, int64_t k, Past past, std::string help) {
      if (splits.size() > 1) label += " (" + split + ")";
      figures.push_back({{std::move(label), "number", -1, std::move(help)},
                         [=](const RunRecord& run) -> Cell {
                           return run.summary.split == split ? loss_at(run, k, past)
                                                             : NAN;
                         }});
    };
    for (const int64_t k : {1, 2, 4})
      add(fmt::format("loss at {}×", k), k, Past::whole,
          fmt::format("nats per token from {} to {} training lengths",
                      0.5 * static_cast<double>(k), k));
    add("restart at 4×", 4, Past::restarted,
        "the same tokens seen through windows of the training length");
    figures.push_back(
        {{splits.size() > 1 ? "twin's restart at 4× (" + split + ")"
                            : "twin's restart at 4×",
          "number", -1,
          "the restart line of the same model trained without a past: a gain counts "
          "against the lower of both"},
         [=, &runs](const RunRecord& run) -> Cell {
           const RunRecord* twin = twin_of(run, runs);
           return twin && twin->summary.split == split && run.summary.split == split
                      ? loss_at(*twin, 4, Past::restarted)
                      : NAN;
         }});
  }
  return figures;
}

std::vector<Figure> figures_of(const std::vector<RunRecord>& runs) {
  std::vector<Figure> figures = metric_figures(runs);
  for (Figure& figure : length_figures(runs)) figures.push_back(std::move(figure));
  figures.push_back(
      {{"train tok/s", "count", 1, "tokens per second of training"},
       [](const RunRecord& r) { return Cell(r.summary.train_tokens_per_second); }});
  figures.push_back({{"write tok/s", "count", 1, "tokens per second of generation"},
                     [](const RunRecord& r) { return Cell(writing_speed(r)); }});
  figures.push_back({{"parameters", "count"},
                     [](const RunRecord& r) { return known(r.summary.parameters); }});
  figures.push_back({{"peak memory", "bytes", -1, "of the process, in training"},
                     [](const RunRecord& r) { return known(r.summary.peak_bytes); }});
  figures.push_back({{"state", "text"},
                     [](const RunRecord& r) { return Cell(r.summary.state_text()); }});
  figures.push_back({{"encoding", "text"}, [](const RunRecord& r) {
                       return Cell(r.summary.recipe.model.encoding);
                     }});
  figures.push_back({{"attention", "text"}, [](const RunRecord& r) {
                       return Cell(r.summary.recipe.model.attention);
                     }});
  const bool any_past = std::any_of(runs.begin(), runs.end(), [](const RunRecord& r) {
    return trains_with_past(r.summary.recipe);
  });
  if (any_past)
    figures.push_back({{"past", "text"}, [](const RunRecord& r) {
                         return Cell(r.summary.recipe.train.past);
                       }});
  return figures;
}

/// How many runs are not done, and why: " 2 still training, 1 stopped."
std::string unfinished(const std::vector<RunRecord>& runs) {
  std::string text;
  for (const auto& [state, words] : {std::pair{RunState::training, "still training"},
                                     std::pair{RunState::stopped, "stopped"},
                                     std::pair{RunState::diverged, "diverged"},
                                     std::pair{RunState::not_started, "not started"}}) {
    const auto count = std::count_if(
        runs.begin(), runs.end(),
        [state = state](const RunRecord& run) { return run.summary.state == state; });
    if (count > 0)
      text += fmt::format("{} {} {}", text.empty() ? "" : ",", count, words);
  }
  return text.empty() ? "" : text + ".";
}

std::string lede(const std::vector<RunRecord>& runs) {
  std::set<std::string> tasks;
  std::set<int64_t> lengths;
  for (const RunRecord& run : runs) {
    tasks.insert(run.summary.recipe.data.task);
    lengths.insert(run.summary.recipe.data.length);
  }
  std::string text = fmt::format("{} {} on {}, trained on windows of {} tokens.",
                                 runs.size(), runs.size() == 1 ? "run" : "runs",
                                 fmt::join(tasks, ", "), fmt::join(lengths, ", ")) +
                     unfinished(runs);
  for (const RunRecord& run : runs)
    for (const std::string& file : run.files.damaged)
      text += fmt::format(" {} of {} is damaged and left out.",
                          std::filesystem::path(file).filename().string(), run.name);
  return text;
}

}  // namespace

double loss_at(const RunRecord& run, int64_t k, Past past) {
  for (const RunSummary::Length& length : run.summary.lengths)
    if (length.tokens == k * run.summary.trained)
      return past == Past::restarted ? length.restart : length.loss;
  return NAN;
}

double writing_speed(const RunRecord& run) {
  const double measured = run.summary.decode_tokens_per_second;
  return std::isnan(measured)
             ? number_in(run.found("continuations"), "tokens_per_second")
             : measured;
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

report::Page report_page(const std::vector<RunRecord>& runs,
                         const std::string& plays_on) {
  report::Page page{"lagwise report", lede(runs), {}, {}, ""};
  if (runs.size() == 1) page.title = runs[0].name;
  for (const RunRecord& run : runs) page.runs.push_back(run.name);
  for (report::Section& made :
       std::array{runs_section(runs), length_section(runs),
                  music_section(runs, plays_on), training_section(runs),
                  cost_section(runs), kernels_section(runs), samples_section(runs)})
    if (!made.blocks.empty()) page.sections.push_back(std::move(made));
  page.foot = "Made by " + version_line() + ".";
  return page;
}

}  // namespace lagwise
