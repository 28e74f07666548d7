// `lagwise compare`: encodings and attentions head to head, at equal budget.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/compare/runner.h"
#include "lagwise/cli/program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/errors.h"
#include "lagwise/core/machine.h"
#include "lagwise/study/compare/changes.h"
#include "lagwise/study/compare/likeness.h"
#include "lagwise/study/compare/plan.h"
#include "lagwise/study/compare/table.h"
#include "lagwise/train/run_folder.h"
#include "lagwise/train/threads.h"

namespace lagwise::cli {
namespace {

struct CompareFlags {
  std::vector<std::string> runs;
  CompareRequest request;
  RunnerOptions runner;
  int seeds = 1, jobs = 1, processes = 1, windows = 64, examples = 0;
  bool json = false, markdown = false, outcome = false, retrain = false;
};

void print(const CompareTable& table, const CompareFlags& flags) {
  if (flags.json)
    fmt::print("{}\n", table_json(table).dump(2));
  else if (flags.outcome)
    fmt::print("{}", flags.markdown ? outcome_markdown(table) : outcome_text(table));
  else
    fmt::print("{}", flags.markdown ? table_markdown(table) : table_text(table));
}

/// The twins' restart lines, and whether anybody gains by a longer past; what pictures
/// looked like to each encoding.
void add_findings(CompareTable& table) {
  set_twins(table.rows);
  for (const std::string& line : geometry_lines(table.rows))
    table.notes.push_back(line);
  for (const std::string& line : gain_lines(table.rows)) table.notes.push_back(line);
}

/// Those whose restart line is of a version in which windows advanced by half of their
/// length: that line shows its targets less, and is easier to beat.
std::vector<std::string> old_restart_lines(const std::vector<RunSummary>& runs) {
  std::vector<std::string> lines;
  for (const RunSummary& run : runs)
    if (run.slide == 0 && !run.lengths.empty() &&
        std::isfinite(run.lengths.back().restart))
      lines.push_back(run.folder +
                      " has a restart line of an older version, which is easier to "
                      "beat: lagwise eval " +
                      run.folder);
  return lines;
}

void compare_runs(const CompareFlags& flags) {
  std::vector<RunSummary> runs;
  for (const std::string& folder : flags.runs) runs.push_back(read_run_summary(folder));
  CompareTable table{rows_of(runs), {}};
  for (const RunSummary& run : runs)
    if (!run.judged())
      table.notes.push_back(run.folder + " is not judged: lagwise eval " + run.folder);
  for (const RunSummary& run : runs)
    for (const std::string& file : run.damaged)
      table.notes.push_back(file + " is damaged and left out");
  if (flags.outcome) return print(table, flags);
  add_findings(table);
  for (const std::string& line : old_restart_lines(runs)) table.notes.push_back(line);
  for (const std::string& line : likeness_lines(runs)) table.notes.push_back(line);
  print(table, flags);
}

/// The seeds of a cell that have a folder, of this recipe. One that ended after fewer
/// steps than are asked for now has yet to go on.
std::vector<RunSummary> runs_of(const GridCell& cell, const CompareFlags& flags) {
  std::vector<RunSummary> runs;
  for (int64_t seed = 0; seed < flags.request.seeds; ++seed) {
    const std::string folder = cell.folder(flags.request.out, seed);
    if (!std::filesystem::exists(run_file(folder, "recipe.toml")) ||
        !changes_of(cell, flags.request, seed).empty())
      continue;
    RunSummary run = read_run_summary(folder, flags.runner.examples);
    run.recipe.train.steps = cell.recipe_for(flags.request, seed).train.steps;
    if (run.finished() && run.step < run.recipe.train.steps)
      run.state = RunState::stopped;
    runs.push_back(std::move(run));
  }
  return runs;
}

/// Why a cell has no figures, if that is not just the clock.
std::string failures_of(const GridCell& cell, const CompareRequest& request,
                        const CompareLedger& ledger) {
  for (int64_t seed = 0; seed < request.seeds; ++seed) {
    const std::string run = cell.name + "/seed-" + std::to_string(seed);
    if (const auto* failure = ledger.failure(run))
      return fmt::format("{}, seed {}: {}",
                         failure->code == kDiverged ? "diverged" : "failed", seed,
                         failure->message);
  }
  return "";
}

CompareRow row_of_cell(const GridCell& cell, const CompareFlags& flags,
                       const CompareLedger& ledger) {
  const CompareRequest& request = flags.request;
  CompareRow row = row_of(cell.recipe, runs_of(cell, flags), request.seeds);
  row.encoding = cell.encoding, row.attention = cell.attention;
  if (!cell.past.empty()) row.past = cell.past;
  if (!cell.not_served.empty()) {
    row.asked = 0;
    row.state = "not served: " + cell.not_served;
  } else if (const std::string why = failures_of(cell, request, ledger); !why.empty()) {
    row.state = why;
  }
  return row;
}

CompareTable table_of(const CompareFlags& flags, const std::vector<GridCell>& cells,
                      const CompareRunner& runner, const CompareLedger& ledger) {
  CompareTable table;
  const CompareRequest& request = flags.request;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0 && cells[i].group == cells[i - 1].group) continue;
    const GridCell* cell = runner.chosen(cells[i].group);
    table.rows.push_back(row_of_cell(cell ? *cell : cells[i], flags, ledger));
    if (!cell && cells[i].not_served.empty())
      table.rows.back().state += "; the learning rate is not chosen yet";
  }
  const bool by_position =
      std::any_of(table.rows.begin(), table.rows.end(), [](const auto& row) {
        return !row.lengths.empty() && row.lengths[0].loss.count > 0;
      });
  if (by_position) table.notes.push_back("loss in nats per token, by position");
  if (request.seeds > 1) table.notes.push_back("deviations are over seeds");
  table.notes.push_back(
      request.rates.empty()
          ? "every cell has the steps and the learning rate of its recipe"
          : fmt::format("every cell has the steps of its recipe and the best learning "
                        "rate of {}, by the loss on valid with the first seed",
                        fmt::join(request.rates, ", ")));
  add_findings(table);
  table.notes.push_back(fmt::format(
      "{} of {} runs are done; {:.1f} of {:g} minutes spent; {} side by side",
      runner.done(), runner.asked(), ledger.spent() / 60, flags.runner.minutes,
      flags.runner.jobs));
  return table;
}

void check(const CompareFlags& flags) {
  const bool grid = !flags.request.recipes.empty();
  if (grid == !flags.runs.empty())
    throw std::invalid_argument(
        "lagwise compare needs either --recipe and --out, or folders of runs");
  if (grid && flags.request.out.empty())
    throw std::invalid_argument("lagwise compare --recipe needs --out, a folder");
  if (grid && flags.outcome)
    throw std::invalid_argument(
        "--outcome: expected folders of runs, got --recipe; the folders of --out will "
        "do "
        "once they are trained");
  if (flags.json && flags.markdown)
    throw std::invalid_argument("expected --json or --markdown, got both");
  if (!(flags.runner.minutes >= 0 && std::isfinite(flags.runner.minutes)))
    throw std::invalid_argument("--minutes: expected a number, 0 or more");
}

/// An exception where not a single run came to its end and that is not just the clock.
void check_outcome(const CompareRequest& request, const std::vector<GridCell>& cells,
                   const CompareRunner& runner, const CompareLedger& ledger) {
  if (runner.asked() == 0)
    throw std::invalid_argument("nothing to train: no cell of the grid can be served");
  int64_t failed = 0, diverged = 0;
  std::string first;
  for (const GridCell& cell : cells)
    for (int64_t seed = 0; seed < request.seeds; ++seed) {
      const std::string run = cell.name + "/seed-" + std::to_string(seed);
      const auto* failure = ledger.failure(run);
      if (!failure) continue;
      ++failed, diverged += failure->code == kDiverged ? 1 : 0;
      if (first.empty()) first = run + ": " + failure->message;
    }
  if (runner.done() > 0 || failed == 0) return;
  if (diverged < failed)
    throw std::runtime_error(
        fmt::format("no run is done, {} failed; {}", failed, first));
  throw Diverged(
      fmt::format("no run is done, {} diverged; {} (with another recipe, "
                  "--retrain trains them anew)",
                  diverged, first));
}

void run_compare(CompareFlags& flags) {
  check(flags);
  if (!flags.runs.empty()) return compare_runs(flags);
  flags.request.seeds = flags.seeds;
  flags.runner.jobs = flags.jobs, flags.runner.windows = flags.windows;
  flags.runner.examples = flags.examples, flags.runner.processes = flags.processes;
  if (flags.jobs > 1)
    flags.runner.threads =
        std::max<int64_t>(1, usable_cores() / (flags.jobs * flags.processes));
  flags.runner.say = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  const std::vector<GridCell> cells = plan_cells(flags.request);
  const RunFolder lock(flags.request.out);
  if (!flags.retrain) refuse_changes(cells, flags.request);
  CompareLedger ledger(flags.request.out);
  CompareRunner runner(flags.request, cells, flags.runner, ledger);
  runner.run();
  print(table_of(flags, cells, runner, ledger), flags);
  check_outcome(flags.request, cells, runner, ledger);
}

void add_grid_options(CLI::App& verb, CompareFlags& flags) {
  verb.add_option(
          "--recipe", flags.request.recipes,
          "Train these recipes, such as recipes/listops.toml,recipes/images-mnist.toml")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--encodings", flags.request.encodings,
                  "With each of these, such as \"none;lrpe:p={identity,odd_even}\"");
  verb.add_option("--attention", flags.request.attentions,
                  "And each of these, such as \"linear:map=elu1;exact\"; | parts the "
                  "layers of one, such as \"3*gated_deltanet|exact:window=64\"");
  verb.add_option("--past", flags.request.pasts,
                  "And each of these train.past, such as \"0;0,0,1,3\": a twin "
                  "without a past beside those with one");
  verb.add_option("--lr", flags.request.rates,
                  "The learning rate, or several to choose from, such as 0.001,0.003")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option(
          "--set", flags.request.set,
          "Put a value over every recipe's, such as train.steps=100; any number "
          "of times")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb.add_option("--seeds", flags.seeds, "Train each cell with so many seeds")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  verb.add_option("--out", flags.request.out,
                  "The folder of all runs; the same command again goes on there")
      ->check(file_name());
  verb.add_flag("--retrain", flags.retrain,
                "Train anew what is there with another recipe, which is refused "
                "otherwise");
}

void add_budget_options(CLI::App& verb, CompareFlags& flags) {
  verb.add_option("--minutes", flags.runner.minutes,
                  "Begin no run after so many minutes, of all commands together")
      ->capture_default_str();
  verb.add_option("--jobs", flags.jobs,
                  "Train so many side by side, the cores shared out among them")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  verb.add_option("--processes", flags.processes,
                  "Train each run with so many processes, as lagwise launch does; "
                  "train.leaves must be a multiple")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  flags.runner.lengths = "1x,2x,4x";
  verb.add_option("--lengths", flags.runner.lengths,
                  "Loss by position at these lengths, as in lagwise eval")
      ->capture_default_str();
  verb.add_option("--windows", flags.windows,
                  "Average loss by position over so many windows")
      ->check(whole_number(1, kMostCount))
      ->capture_default_str();
  verb.add_option("--examples", flags.examples,
                  "Judge the metric on so many examples spread over the split; all "
                  "unless given")
      ->check(whole_number(1, kMostCount));
}

void add_compare(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "compare", "Train encodings and attentions head to head, or compare runs");
  const auto flags = std::make_shared<CompareFlags>();
  verb->add_option("RUN", flags->runs, "Folders of runs already made");
  add_grid_options(*verb, *flags);
  add_budget_options(*verb, *flags);
  verb->add_flag("--json", flags->json, "Print one JSON object instead of a table");
  verb->add_flag("--markdown", flags->markdown, "Print the table as Markdown");
  verb->add_flag("--outcome", flags->outcome,
                 "Of runs of any recipes: what each cost and what came of it, in "
                 "parameters, steps, minutes, memory, its metric and a blind guess's");
  verb->callback([flags] { run_compare(*flags); });
}

const RegisterVerb compare_registered({.name = "compare",
                                       .place = 5,
                                       .add = add_compare});

}  // namespace
}  // namespace lagwise::cli
