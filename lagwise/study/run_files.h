#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lagwise {

/// JSON whose keys stay in the order in which they were written.
using Json = nlohmann::ordered_json;

/// The files of a run's folder (docs/runs.md) besides recipe and checkpoints: the one
/// place that reads them. A run that is still training lacks some of them and may end
/// in half a line; what is missing or cannot be read is left out.
struct RunFiles {
  std::string folder;
  Json facts;                        ///< run.json; null where there is none
  std::vector<Json> metrics;         ///< the whole lines of metrics.jsonl, in its order
  std::map<std::string, Json> eval;  ///< "position-valid" -> eval/position-valid.json
  std::map<std::string, Json> cards;  ///< samples/NAME.json by NAME
  std::vector<std::string> damaged;   ///< files that are no JSON, by their paths
};

RunFiles read_run_files(const std::string& folder);

/// A number of a JSON object, or NaN; a whole number, or 0; a text, or nothing.
double number_in(const Json& object, const std::string& key);
int64_t whole_in(const Json& object, const std::string& key);
std::string text_in(const Json& object, const std::string& key);

}  // namespace lagwise
