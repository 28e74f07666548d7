#include "lagwise/cli/train_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace lagwise::cli {
namespace {

/// "41.2k"
std::string rate_text(double per_second) {
  if (per_second >= 1e6) return fmt::format("{:.2f}M", per_second / 1e6);
  if (per_second >= 1e3) return fmt::format("{:.1f}k", per_second / 1e3);
  return fmt::format("{:.0f}", per_second);
}

}  // namespace

std::string duration_text(double seconds) {
  const auto s = static_cast<int64_t>(std::lround(std::max(seconds, 0.0)));
  if (s >= 3600) return fmt::format("{} h {:02} min", s / 3600, s % 3600 / 60);
  if (s >= 60) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} s", s);
}

void TrainProgress::keep(const std::string& line) {
  bar_.clear();
  // Not fmt::print, which throws where nobody reads: training is to be saved first.
  std::fputs((line + "\n").c_str(), out_);
  std::fflush(out_);
}

std::string TrainProgress::figures(const TrainingLine& line) const {
  const double left = line.seconds / static_cast<double>(line.step) *
                      static_cast<double>(steps_ - line.step);
  return fmt::format("step {}/{}  loss {:.4f}  lr {:.2e}  {} tokens/s  {} left",
                     line.step, steps_, line.loss, line.lr,
                     rate_text(line.tokens_per_second), duration_text(left));
}

void TrainProgress::starts(int64_t step, int64_t parameters, int64_t threads) {
  keep(fmt::format(
      "{} parameters, {} thread(s), {}", parameters, threads,
      step == 0 ? "from the start" : fmt::format("going on after step {}", step)));
}

void TrainProgress::noted(const std::string& line) { keep(line); }

void TrainProgress::stepped(const TrainingLine& line) {
  if (out_ == stdout)
    bar_.show(figures(line),
              static_cast<double>(line.step) / static_cast<double>(steps_));
}

void TrainProgress::logged(const TrainingLine& line) {
  if (!terminal_) keep(figures(line));
}

void TrainProgress::evaluating(double fraction) {
  if (out_ == stdout) bar_.show("evaluating", fraction);
}

void TrainProgress::evaluated(int64_t step, const Evaluation& found, bool best) {
  std::string more;
  for (const auto& [name, value] : found.more)
    more += fmt::format("  {} {:.4g}", name, value);
  keep(fmt::format("step {}  {}: loss {:.4f}  {} {:.4f}{}{}", step, found.split,
                   found.loss, found.metric, found.value, more,
                   best ? "  (best)" : ""));
}

}  // namespace lagwise::cli
