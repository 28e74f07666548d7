#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "lagwise/train/continuations.h"
#include "lagwise/train/run.h"

namespace lagwise::cli {

/// `lagwise eval RUN --continuations 50`: how like their sources they are.
struct ContinuationFlags {
  int count = 0;  ///< 0: not asked for
  int prompt = 0, bars = 0, length = 0, seed = 0;
  double temperature = 1, top_p = 1;
  std::string save;
};

void add_continuation_flags(CLI::App& verb, ContinuationFlags& flags);

struct ContinuationsFound {
  ContinuationPlan plan;
  ContinuationFigures figures;
  double tokens_per_second = 0;
  int64_t trained = 0;
};

/// Unless given, the prompt is a quarter of the training length, and what is written
/// ends at four times it; after a prompt in bars it is as long. With `save`, writes each
/// as MIDI with its card. Of a prompt in bars, plan.prompt then is the mean in tokens.
ContinuationsFound find_continuations(const Run& run, const std::string& split,
                                      const ContinuationFlags& flags,
                                      const std::function<void(double)>& progress);

std::string continuations_text(const ContinuationsFound& found);

/// As docs/runs.md has it.
nlohmann::ordered_json continuations_json(const ContinuationsFound& found,
                                          int64_t step);

}  // namespace lagwise::cli
