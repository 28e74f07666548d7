#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lagwise::cli {

struct RunSummary;  // cli/run_summary.h

/// All that the files of a run's folder (docs/runs.md) say, for those who show it: no
/// model and no data are opened. A run that is still training lacks some files and may
/// end in half a line; what is missing or cannot be read is left out.
struct RunRecord {
  using Json = nlohmann::json;

  std::string folder, name;
  std::shared_ptr<const RunSummary> summary;  ///< never null
  std::vector<Json> training, evaluations;    ///< lines of metrics.jsonl, by step
  std::map<std::string, Json> eval;   ///< "position-valid" -> eval/position-valid.json
  std::map<std::string, Json> cards;  ///< samples/NAME.json by NAME
  std::vector<std::string> damaged;   ///< files that are no JSON, by their paths

  /// eval/KIND-SPLIT.json of the first split there is of test, valid, train; or null.
  /// Found on all of the run's own data: other results have other names.
  const Json& found(const std::string& kind) const;
};

RunRecord read_run(const std::string& folder);

/// The runs that folders stand for: a run itself (it has a recipe.toml), or all that
/// lie below, by name. DataError for one that holds none. Names are what
/// tells runs apart: their folders', else titles, encodings, encodings with attentions
/// and seeds, or longer ends of their paths. Among several, a run whose recipe cannot
/// be read is left out, and `left_out` says why.
std::vector<RunRecord> read_runs(const std::vector<std::string>& folders,
                                 std::vector<std::string>& left_out);
std::vector<RunRecord> read_runs(const std::vector<std::string>& folders);

/// A number of a JSON object, or NaN; its text, or nothing.
double number_in(const nlohmann::json& object, const std::string& key);
std::string text_in(const nlohmann::json& object, const std::string& key);

}  // namespace lagwise::cli
