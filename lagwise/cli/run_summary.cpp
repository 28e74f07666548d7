#include "lagwise/cli/run_summary.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

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

/// A JSON file of the run; null where there is none.
Json read_json(const std::string& folder, const std::string& name) {
  const std::string file = run_file(folder, name);
  std::ifstream stream(file);
  if (!stream) return nullptr;
  Json json = Json::parse(stream, nullptr, false);
  if (!json.is_object()) throw DataError(file, -1, "a JSON object");
  return json;
}

void read_metrics(RunSummary& run) {
  std::ifstream stream(run_file(run.folder, "metrics.jsonl"));
  double tokens = 0, seconds = 0;
  for (std::string line; std::getline(stream, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) continue;  // the half of a line that a kill left
    run.step = std::max(run.step, whole(json, "step"));
    if (json.contains("tokens"))
      tokens = number(json, "tokens"), seconds = number(json, "seconds");
    if (words(json, "split") == "valid")
      run.valid_loss = std::fmin(run.valid_loss, number(json, "loss"));
    if (json.value("done", false)) {
      run.finished = true;
      run.peak_bytes = whole(json, "peak_bytes");
    }
  }
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

void read_evaluations(RunSummary& run) {
  for (const std::string split : {"test", "valid"}) {
    const Json metric = read_json(run.folder, "eval/metric-" + split + ".json");
    if (!metric.is_object()) continue;
    run.split = split;
    run.metric = words(metric, "metric"), run.value = number(metric, "value");
    read_positions(run, read_json(run.folder, "eval/position-" + split + ".json"));
    run.decode_tokens_per_second =
        decoding_speed(read_json(run.folder, "eval/decode-" + split + ".json"));
    return;
  }
}

}  // namespace

RunSummary read_run_summary(const std::string& folder) {
  RunSummary run;
  run.folder = folder;
  const std::string recipe = run_file(folder, "recipe.toml");
  if (!std::filesystem::exists(recipe))
    throw DataError(folder, -1, "the folder of a run, with a recipe.toml");
  run.recipe = read_recipe(recipe);
  const Json facts = read_json(folder, "run.json");
  if (facts.is_object()) run.parameters = whole(facts, "parameters");
  read_metrics(run);
  read_evaluations(run);
  return run;
}

}  // namespace lagwise::cli
