#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "lagwise/core/sampler.h"
#include "lagwise/tasks/token_text.h"

namespace lagwise::cli {

/// How `lagwise generate` draws, and where it stops.
struct SamplingFlags {
  double temperature = 1, top_p = 1, min_p = 0, repetition_penalty = 1;
  int top_k = 0, repetition_window = 64, seed = 0;
  std::vector<std::string> stops;
  bool log_probabilities = false;

  Sampling sampling() const;

  /// The tokens of each stop; std::invalid_argument where a text has none.
  std::vector<std::vector<int64_t>> stop_tokens(const TokenText& text) const;
};

void add_sampling_flags(CLI::App& verb, SamplingFlags& flags);

}  // namespace lagwise::cli
