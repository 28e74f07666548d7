#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "lagwise/study/run_files.h"
#include "lagwise/train/recipe.h"

namespace lagwise {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

enum class RunState { not_started, training, stopped, diverged, finished };

/// What the files of a run say about it, in figures for a table. What
/// is not there yet is kUnknown, 0 or empty.
struct RunSummary {
  std::string folder;
  Recipe recipe;
  int64_t step = 0;  ///< of the last line of metrics.jsonl
  RunState state = RunState::not_started;
  std::string data_hash;  ///< of the data it was trained on
  std::string geometry;   ///< of pictures, what encodings see: "14 x 14", or "line"

  double valid_loss = kUnknown;  ///< the lowest on the split valid, while training
  double train_tokens_per_second = kUnknown;
  double decode_tokens_per_second = kUnknown;  ///< token by token, one sequence
  double train_seconds = kUnknown;             ///< of a run that is done
  int64_t peak_bytes = 0, parameters = 0;

  // From eval/*.json, as far as it was found on the run's own data: of the split test,
  // where there is one, else valid; of all its examples, if that was ever asked.
  std::string metric, split;
  double value = kUnknown;           ///< of the metric
  double guess = kUnknown;           ///< what a blind guess gives
  int64_t examples = 0, of_all = 0;  ///< that it is of, and those of the split; 0 where
                                     ///<   an older lagwise did not say

  /// The loss of the targets from the last length to this one, in nats, and the same
  /// tokens on the restart line; or, of tasks judged by length, the metric at this one.
  struct Length {
    int64_t tokens = 0;
    double loss = kUnknown, restart = kUnknown, value = kUnknown;
  };
  int64_t trained = 0;  ///< the training length
  int64_t slide =
      0;  ///< of the restart line; 0: of an older lagwise, half of `trained`
  std::vector<Length> lengths;

  std::vector<std::string> damaged;  ///< files that are no JSON, and were left out

  bool finished() const { return state == RunState::finished; }
  bool judged() const { return !metric.empty(); }
  /// What the metric is of: "test", or "test, 3 of 217 examples".
  std::string judged_on() const;
  /// "done, 100 steps", "stopped at step 5 of 100", ...
  std::string state_text() const;
};

/// `examples` > 0: takes what was found on so many, rather than on all. DataError for a
/// folder without recipe.toml, which is none of a run, and for a recipe that is none.
RunSummary summary_of(const RunFiles& files, int64_t examples = 0);
RunSummary read_run_summary(const std::string& folder, int64_t examples = 0);

}  // namespace lagwise
