#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lagwise/train/evaluation.h"

namespace lagwise::cli {

// What `lagwise eval` found as JSON, in the form of docs/runs.md. A number that is not
// finite (the error of a single window) is null.

nlohmann::ordered_json metric_json(const Evaluation& found, int64_t step);
nlohmann::ordered_json position_json(const LossByPosition& found, int64_t step);
nlohmann::ordered_json stream_json(const LossAlongStream& found, int64_t step);

/// Writes RUN/eval/NAME.json, all of it or nothing; returns its path.
std::string write_eval(const std::string& run, const std::string& name,
                       const nlohmann::ordered_json& json);

}  // namespace lagwise::cli
