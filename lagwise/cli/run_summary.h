#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "lagwise/train/recipe.h"

namespace lagwise::cli {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// What a run's folder (docs/runs.md) says about the run, in figures for a table. What
/// is not there yet is kUnknown, 0 or empty.
struct RunSummary {
  std::string folder;
  Recipe recipe;
  int64_t step = 0;  ///< of the last line of metrics.jsonl
  bool finished = false;

  double valid_loss = kUnknown;  ///< the lowest on the split valid, while training
  double train_tokens_per_second = kUnknown;
  double decode_tokens_per_second = kUnknown;  ///< token by token, one sequence
  int64_t peak_bytes = 0, parameters = 0;

  // From eval/*.json: of the split test, where there is one, else valid.
  std::string metric, split;
  double value = kUnknown;  ///< of the metric

  /// The loss of the targets from the last length to this one, in nats, and the same
  /// tokens on the restart line.
  struct Length {
    int64_t tokens = 0;
    double loss = kUnknown, restart = kUnknown;
  };
  int64_t trained = 0;  ///< the training length
  std::vector<Length> lengths;

  bool judged() const { return !metric.empty(); }
};

/// DataError names a damaged file, or the folder if it is no run (has no recipe.toml).
RunSummary read_run_summary(const std::string& folder);

}  // namespace lagwise::cli
