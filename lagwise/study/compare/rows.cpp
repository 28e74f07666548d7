// From runs to the rows of a comparison.

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "lagwise/study/compare/table.h"
#include "lagwise/study/twins.h"

namespace lagwise {
namespace {

template <class Of>
Spread spread_over(const std::vector<const RunSummary*>& runs, const Of& of) {
  std::vector<double> values;
  for (const RunSummary* run : runs) values.push_back(of(*run));
  return spread_of(values);
}

/// The figures at a length, of the runs that have them.
CompareRow::Length length_of(const std::vector<const RunSummary*>& runs,
                             int64_t tokens) {
  std::vector<double> losses, restarts, values;
  CompareRow::Length found{.tokens = tokens};
  for (const RunSummary* run : runs)
    for (const RunSummary::Length& length : run->lengths) {
      if (length.tokens != tokens) continue;
      losses.push_back(length.loss), restarts.push_back(length.restart);
      values.push_back(length.value);
      found.seeds[run->recipe.train.seed] = {length.loss, length.restart};
    }
  found.loss = spread_of(losses), found.restart = spread_of(restarts);
  found.value = spread_of(values);
  return found;
}

std::string state_of(const std::vector<RunSummary>& runs, int64_t done, int64_t asked) {
  if (done == asked) return "done";
  std::string state = std::to_string(done) + " of " + std::to_string(asked) +
                      (asked == 1 ? " seed" : " seeds");
  for (const RunSummary& run : runs)
    if (!run.finished() || !run.judged())
      return "unfinished: " + state + ", one " +
             (run.finished() ? "not judged" : run.state_text());
  return (done == 0 ? "not started: " : "unfinished: ") + state;
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  Spread spread;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    sum += x;
    ++spread.count;
  }
  if (spread.count == 0) return spread;
  const auto count = static_cast<double>(spread.count);
  spread.mean = sum / count;
  for (const double x : values)
    if (std::isfinite(x)) squares += (x - spread.mean) * (x - spread.mean);
  if (spread.count > 1) spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

CompareRow row_of(const std::string& recipe, const std::vector<RunSummary>& runs,
                  int64_t asked) {
  CompareRow row;
  row.recipe = recipe, row.asked = asked;
  std::vector<const RunSummary*> done;
  for (const RunSummary& run : runs) {
    row.encoding = run.recipe.model.encoding, row.lr = run.recipe.train.lr;
    row.attention = run.recipe.model.attention;
    row.geometry = run.geometry;
    row.past = run.recipe.train.past, row.twin_key = twin_key(run.recipe);
    row.steps = run.finished() ? run.step : run.recipe.train.steps;
    if (run.finished() && run.judged()) done.push_back(&run);
  }
  row.done = static_cast<int64_t>(done.size());
  row.state = state_of(runs, row.done, asked);
  if (done.empty()) return row;
  row.metric = done[0]->metric + " (" + done[0]->judged_on() + ")";
  row.trained = done[0]->trained, row.parameters = done[0]->parameters;
  row.value = spread_over(done, [](const RunSummary& x) { return x.value; });
  row.guess = done[0]->guess;
  row.train_seconds =
      spread_over(done, [](const RunSummary& x) { return x.train_seconds; });
  for (const RunSummary::Length& length : done[0]->lengths)
    row.lengths.push_back(length_of(done, length.tokens));
  row.train_speed =
      spread_over(done, [](const RunSummary& x) { return x.train_tokens_per_second; });
  row.decode_speed =
      spread_over(done, [](const RunSummary& x) { return x.decode_tokens_per_second; });
  for (const RunSummary* run : done)
    row.peak_bytes = std::max(row.peak_bytes, run->peak_bytes);
  return row;
}

std::vector<CompareRow> rows_of(const std::vector<RunSummary>& runs) {
  struct Group {
    std::string key;
    std::vector<RunSummary> runs;
    std::string repeats;  // the run whose recipe and seed this one has
  };
  std::vector<Group> groups;
  for (const RunSummary& run : runs) {
    Recipe recipe = run.recipe;
    recipe.train.seed = 0;
    const std::string key = recipe_text(recipe);
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const Group& x) {
      const RunSummary& first = x.runs[0];
      return x.key == key &&
             (!run.judged() || !first.judged() || run.judged_on() == first.judged_on());
    });
    if (found == groups.end()) {
      groups.push_back({key, {run}, ""});
      continue;
    }
    const auto same = std::find_if(
        found->runs.begin(), found->runs.end(), [&](const RunSummary& other) {
          return other.recipe.train.seed == run.recipe.train.seed;
        });
    if (same == found->runs.end()) {
      found->runs.push_back(run);
    } else {
      groups.push_back({"", {run}, same->folder});
    }
  }
  std::vector<CompareRow> rows;
  for (const Group& group : groups) {
    const Recipe& recipe = group.runs[0].recipe;
    const std::string name = recipe.title.empty() ? recipe.data.task : recipe.title;
    rows.push_back(row_of(name, group.runs, std::ssize(group.runs)));
    for (const RunSummary& run : group.runs) rows.back().runs.push_back(run.folder);
    if (!group.repeats.empty())
      rows.back().remark = "recipe and seed of " + group.repeats + ": no second sample";
  }
  return rows;
}

}  // namespace lagwise
