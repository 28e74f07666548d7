#include "lagwise/cli/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lagwise/cli/eval/files.h"
#include "lagwise/core/errors.h"
#include "lagwise/train/run_folder.h"

namespace lagwise::cli {
namespace {

using Json = nlohmann::json;

double number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : kUnknown;
}

int64_t whole(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

std::string words(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

/// A JSON file of the run; null where there is none, or what is none.
Json read_json(RunSummary& run, const std::string& name) {
  const std::string file = run_file(run.folder, name);
  std::ifstream stream(file);
  if (!stream) return nullptr;
  Json json = Json::parse(stream, nullptr, false);
  if (json.is_object()) return json;
  run.damaged.push_back(file);
  return nullptr;
}

void read_metrics(RunSummary& run) {
  std::ifstream stream(run_file(run.folder, "metrics.jsonl"));
  double tokens = 0, seconds = 0;
  bool finished = false, diverged = false;
  for (std::string line; std::getline(stream, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) continue;  // the half of a line that a kill left
    run.step = std::max(run.step, whole(json, "step"));
    if (json.contains("tokens"))
      tokens = number(json, "tokens"), seconds = number(json, "seconds");
    if (words(json, "split") == "valid")
      run.valid_loss = std::fmin(run.valid_loss, number(json, "loss"));
    diverged = diverged || json.contains("diverged");
    if (json.contains("done"))
      finished = true, run.peak_bytes = whole(json, "peak_bytes");
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
  run.trained = whole(json, "trained");
  for (const Json& span : json.value("spans", Json::array()))
    if (whole(span, "end") >= run.trained)
      run.lengths.push_back(
          {whole(span, "end"), number(span, "loss"), number(span, "restart")});
}

/// The median of single tokens: the first ones pay for a cold start.
double decoding_speed(const Json& json) {
  std::vector<double> speeds;
  if (!json.is_object() || whole(json, "chunk") != 1) return kUnknown;
  for (const Json& point : json.value("points", Json::array()))
    speeds.push_back(number(point, "tokens_per_second"));
  if (speeds.empty()) return kUnknown;
  std::nth_element(speeds.begin(), speeds.begin() + std::ptrdiff_t(speeds.size() / 2),
                   speeds.end());
  return speeds[speeds.size() / 2];
}

/// How many examples the files eval/metric-SPLIT~examples=N.json are of, the most
/// first.
std::vector<int64_t> parts_judged(const RunSummary& run, const std::string& split) {
  const std::string begin = "metric-" + split + "~examples=", end = ".json";
  std::vector<int64_t> counts;
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator(run_file(run.folder, "eval"), none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin) || !name.ends_with(end)) continue;
    int64_t count = 0;
    const char* const last = name.data() + name.size() - end.size();
    const auto read = std::from_chars(name.data() + begin.size(), last, count);
    if (read.ptr == last && read.ec == std::errc()) counts.push_back(count);
  }
  std::sort(counts.rbegin(), counts.rend());
  return counts;
}

/// The metric of a part of a split; false: there is none.
bool read_metric(RunSummary& run, const std::string& split, const EvalPart& part) {
  const std::string name = "eval/" + eval_name("metric", split, part) + ".json";
  const Json metric = read_json(run, name);
  if (words(metric, "metric").empty()) {
    if (metric.is_object()) run.damaged.push_back(run_file(run.folder, name));
    return false;
  }
  run.split = split;
  run.metric = words(metric, "metric"), run.value = number(metric, "value");
  run.examples = whole(metric, "examples"), run.of_all = whole(metric, "of");
  return true;
}

bool read_some_metric(RunSummary& run, int64_t examples) {
  const std::array<std::string, 2> splits = {"test", "valid"};
  for (const std::string& split : splits)
    if ((examples > 0 && read_metric(run, split, {.examples = examples})) ||
        read_metric(run, split, {}))
      return true;
  for (const std::string& split : splits)
    for (const int64_t count : parts_judged(run, split))
      if (read_metric(run, split, {.examples = count})) return true;
  return false;
}

void read_evaluations(RunSummary& run, int64_t examples) {
  if (!read_some_metric(run, examples)) return;
  const auto found = [&](const std::string& kind) {
    return read_json(run, "eval/" + eval_name(kind, run.split) + ".json");
  };
  read_positions(run, found("position"));
  run.decode_tokens_per_second = decoding_speed(found("decode"));
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

RunSummary read_run_summary(const std::string& folder, int64_t examples) {
  RunSummary run;
  run.folder = folder;
  const std::string recipe = run_file(folder, "recipe.toml");
  if (!std::filesystem::exists(recipe))
    throw DataError(folder, -1, "the folder of a run, with a recipe.toml");
  run.recipe = read_kept_recipe(recipe);
  const Json facts = read_json(run, "run.json");
  run.parameters = whole(facts, "parameters");
  run.data_hash = words(facts, "data_hash");
  read_metrics(run);
  read_evaluations(run, examples);
  std::sort(run.damaged.begin(), run.damaged.end());
  const auto again = std::unique(run.damaged.begin(), run.damaged.end());
  run.damaged.erase(again, run.damaged.end());
  return run;
}

}  // namespace lagwise::cli
