#pragma once

#include <string>

#include "lagwise/train/evaluation.h"
#include "lagwise/train/trainer_state.h"

namespace lagwise {

/// What one line about training says.
struct TrainingLine {
  int64_t step = 0;
  double loss = 0;  ///< nats per target, the mean since the last line
  double lr = 0;
  double grad_norm = 0;
  int64_t tokens = 0;       ///< trained on since the run began
  int64_t tokens_read = 0;  ///< of the past before them, not trained on
  double tokens_per_second = 0, seconds = 0;
};

/// metrics.jsonl of a run, docs/runs.md. Each line is one write, so that a reader never
/// sees half of one but at the end of a killed run.
class Metrics {
 public:
  /// Opens the file to go on after `step`: lines after it, the end of the run and
  /// whatever is no line are taken out. Not `judged`: so is the evaluation of `step`.
  Metrics(const std::string& file, int64_t step, bool judged = true);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void add(const TrainingLine& line);
  void add(int64_t step, const Evaluation& found);
  void add_end(int64_t step, double seconds, int64_t peak_bytes);
  void add_divergence(int64_t step, const std::string& what);

  void sync();  ///< what was added is on the disk

 private:
  void write(const std::string& line);

  std::string file_;
  int descriptor_ = -1;
};

/// Whether a metrics file says that its run ended after `step` steps.
bool ended_at(const std::string& file, int64_t step);

}  // namespace lagwise
