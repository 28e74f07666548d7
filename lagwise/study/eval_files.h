#pragma once

#include <string>

#include "lagwise/study/run_files.h"
#include "lagwise/train/evaluation.h"
#include "lagwise/train/pseudo_perplexity.h"

namespace lagwise {

/// What was judged, where that is not all of the run's own data.
struct EvalPart {
  std::string data_hash = {};  ///< of other data; empty: the run's own
  int64_t examples = 0;        ///< of a metric; 0: all there are
};

/// The name of a result in RUN/eval, without ".json": "metric-test" for all of the
/// run's own data, which is what other verbs take for the run's figure; else
/// "metric-test~data=0123456789abcdef~examples=3", so that it can be no one's by
/// mistake.
std::string eval_name(const std::string& kind, const std::string& split,
                      const EvalPart& part = {});

// What `lagwise eval` found as JSON, in the form of docs/runs.md. A number that is not
// finite (the error of a single window) is null.

/// `of_all`: examples of the whole split.
Json metric_json(const Evaluation& found, int64_t step, int64_t of_all);
Json position_json(const LossByPosition& found, int64_t step);
Json lengths_json(const MetricByLength& found, int64_t step);
Json stream_json(const LossAlongStream& found, int64_t step);
Json pseudo_json(const PseudoPerplexity& found, int64_t step);

/// Writes RUN/eval/NAME.json, all of it or nothing; returns its path.
std::string write_eval(const std::string& run, const std::string& name,
                       const Json& json);

}  // namespace lagwise
