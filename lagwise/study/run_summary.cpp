#include "lagwise/study/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "lagwise/core/errors.h"
#include "lagwise/study/eval_files.h"
#include "lagwise/study/run_files.h"
#include "lagwise/train/run_folder.h"

namespace lagwise {
namespace {

void read_metrics(const RunFiles& files, RunSummary& run) {
  double tokens = 0, seconds = 0;
  bool finished = false, diverged = false;
  for (const Json& line : files.metrics) {
    run.step = std::max(run.step, whole_in(line, "step"));
    if (line.contains("tokens")) {
      tokens = number_in(line, "tokens");
      seconds = number_in(line, "seconds");
    }
    if (text_in(line, "split") == "valid")
      run.valid_loss = std::fmin(run.valid_loss, number_in(line, "loss"));
    diverged = diverged || line.contains("diverged");
    finished = finished || line.contains("done");
    if (!line.contains("done")) continue;
    run.peak_bytes = whole_in(line, "peak_bytes");
    run.train_seconds = number_in(line, "seconds");
  }
  run.state = finished                       ? RunState::finished
              : is_being_trained(run.folder) ? RunState::training
              : diverged                     ? RunState::diverged
              : run.step > 0                 ? RunState::stopped
                                             : RunState::not_started;
  if (seconds > 0) run.train_tokens_per_second = tokens / seconds;
}

void read_positions(RunSummary& run, const Json& json) {
  if (!json.is_object()) return;
  run.trained = whole_in(json, "trained");
  run.slide = whole_in(json, "slide");
  for (const Json& span : json.value("spans", Json::array()))
    if (whole_in(span, "end") >= run.trained)
      run.lengths.push_back(
          {whole_in(span, "end"), number_in(span, "loss"), number_in(span, "restart")});
}

void read_lengths(RunSummary& run, const Json& json) {
  if (!json.is_object()) return;
  run.trained = whole_in(json, "trained");
  for (const Json& at : json.value("lengths", Json::array()))
    run.lengths.push_back(
        {.tokens = whole_in(at, "tokens"), .value = number_in(at, "value")});
}

/// "14 x 14", "line", or nothing of a run without a grid, or of an older lagwise.
std::string geometry_in(const Json& facts) {
  if (!facts.is_object() || !facts.contains("grid_seen")) return "";
  std::string text;
  for (const Json& side : facts["grid_seen"])
    if (side.is_number_integer())
      text += (text.empty() ? "" : " x ") + std::to_string(side.get<int64_t>());
  return text.empty() ? "line" : text;
}

/// The median of single tokens: the first ones pay for a cold start.
double decoding_speed(const Json& json) {
  std::vector<double> speeds;
  if (!json.is_object() || whole_in(json, "chunk") != 1) return kUnknown;
  for (const Json& point : json.value("points", Json::array()))
    speeds.push_back(number_in(point, "tokens_per_second"));
  if (speeds.empty()) return kUnknown;
  std::nth_element(speeds.begin(), speeds.begin() + std::ptrdiff_t(speeds.size() / 2),
                   speeds.end());
  return speeds[speeds.size() / 2];
}

/// How many examples the files eval/metric-SPLIT~examples=N.json are of, the most
/// first.
std::vector<int64_t> parts_judged(const RunFiles& files, const std::string& split) {
  const std::string begin = eval_name("metric", split) + "~examples=";
  std::vector<int64_t> counts;
  for (const auto& [name, json] : files.eval) {
    if (!name.starts_with(begin)) continue;
    int64_t count = 0;
    const char* const last = name.data() + name.size();
    const auto read = std::from_chars(name.data() + begin.size(), last, count);
    if (read.ptr == last && read.ec == std::errc()) counts.push_back(count);
  }
  std::sort(counts.rbegin(), counts.rend());
  return counts;
}

const Json& eval_in(const RunFiles& files, const std::string& name) {
  static const Json nothing;
  const auto found = files.eval.find(name);
  return found != files.eval.end() ? found->second : nothing;
}

/// The metric of a part of a split; false: there is none.
bool read_metric(const RunFiles& files, RunSummary& run, const std::string& split,
                 const EvalPart& part) {
  const std::string name = eval_name("metric", split, part);
  const Json& metric = eval_in(files, name);
  if (text_in(metric, "metric").empty()) {
    if (metric.is_object())
      run.damaged.push_back(run_file(run.folder, "eval/" + name + ".json"));
    return false;
  }
  run.split = split;
  run.metric = text_in(metric, "metric");
  run.value = number_in(metric, "value");
  run.guess = number_in(metric, "guess");
  run.examples = whole_in(metric, "examples");
  run.of_all = whole_in(metric, "of");
  return true;
}

bool read_some_metric(const RunFiles& files, RunSummary& run, int64_t examples) {
  const std::array<std::string, 2> splits = {"test", "valid"};
  for (const std::string& split : splits)
    if ((examples > 0 && read_metric(files, run, split, {.examples = examples})) ||
        read_metric(files, run, split, {}))
      return true;
  for (const std::string& split : splits)
    for (const int64_t count : parts_judged(files, split))
      if (read_metric(files, run, split, {.examples = count})) return true;
  return false;
}

}  // namespace

std::string RunSummary::judged_on() const {
  if (examples >= of_all) return split;
  return fmt::format("{}, {} of {} examples", split, examples, of_all);
}

std::string RunSummary::state_text() const {
  switch (state) {
    case RunState::not_started:
      return "not started";
    case RunState::training:
      return fmt::format("training, step {} of {}", step, recipe.train.steps);
    case RunState::stopped:
      return fmt::format("stopped at step {} of {}", step, recipe.train.steps);
    case RunState::diverged:
      return fmt::format("diverged at step {} of {}", step, recipe.train.steps);
    case RunState::finished:
      break;
  }
  return fmt::format("done, {} steps", step);
}

RunSummary summary_of(const RunFiles& files, int64_t examples) {
  RunSummary run;
  run.folder = files.folder;
  const std::string recipe = run_file(run.folder, "recipe.toml");
  if (!std::filesystem::exists(recipe))
    throw DataError(run.folder, -1, "the folder of a run, with a recipe.toml");
  run.recipe = read_kept_recipe(recipe);
  run.parameters = whole_in(files.facts, "parameters");
  run.data_hash = text_in(files.facts, "data_hash");
  run.geometry = geometry_in(files.facts);
  run.damaged = files.damaged;
  read_metrics(files, run);
  if (read_some_metric(files, run, examples)) {
    read_positions(run, eval_in(files, eval_name("position", run.split)));
    const EvalPart part{.examples = run.examples < run.of_all ? run.examples : 0};
    read_lengths(run, eval_in(files, eval_name("lengths", run.split, part)));
    run.decode_tokens_per_second =
        decoding_speed(eval_in(files, eval_name("decode", run.split)));
  }
  std::sort(run.damaged.begin(), run.damaged.end());
  const auto again = std::unique(run.damaged.begin(), run.damaged.end());
  run.damaged.erase(again, run.damaged.end());
  return run;
}

RunSummary read_run_summary(const std::string& folder, int64_t examples) {
  return summary_of(read_run_files(folder), examples);
}

}  // namespace lagwise
