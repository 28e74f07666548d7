#pragma once

#include <cstdio>
#include <string>

#include "lagwise/cli/terminal/progress_line.h"
#include "lagwise/train/trainer.h"

namespace lagwise::cli {

/// "1 h 02 min", "4 min 10 s", "12 s"
std::string duration_text(double seconds);

/// Shows training to a person: on a terminal a bar that is drawn over and over, with
/// the lines worth keeping above it; else one line now and then.
class TrainProgress : public TrainListener {
 public:
  /// Lines worth keeping go to `out`.
  TrainProgress(int64_t steps, bool terminal, std::FILE* out = stdout)
      : steps_(steps), terminal_(terminal), out_(out) {}

  void starts(int64_t step, int64_t parameters, int64_t threads) override;
  void noted(const std::string& line) override;
  void stepped(const TrainingLine& line) override;
  void logged(const TrainingLine& line) override;
  void evaluating(double fraction) override;
  void evaluated(int64_t step, const Evaluation& found, bool best) override;

 private:
  std::string figures(const TrainingLine& line) const;
  void keep(const std::string& line);  ///< above the bar

  int64_t steps_;
  bool terminal_;
  std::FILE* out_;
  ProgressLine bar_;
};

}  // namespace lagwise::cli
