#pragma once

#include <string>
#include <vector>

#include "lagwise/study/run_files.h"
#include "lagwise/study/run_summary.h"

namespace lagwise {

/// All that the files of a run's folder say, for those who show it: no model and no data
/// are opened.
struct RunRecord {
  std::string name;
  RunFiles files;
  RunSummary summary;
  std::vector<Json> training, evaluations;  ///< lines of metrics.jsonl, by step

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

}  // namespace lagwise
