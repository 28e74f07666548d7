#include "lagwise/cli/train_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace lagwise::cli {
namespace {

constexpr int kBarWidth = 24;
constexpr double kRedraw = 0.1;  // seconds between two drawings

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

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

std::string bar_text(double fraction, int width) {
  const auto full = static_cast<size_t>(
      std::lround(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(width)));
  const auto rest = static_cast<size_t>(width) - full;
  return "[" + std::string(full, '#') + std::string(rest, '.') + "]";
}

void TrainProgress::clear() const {
  if (!terminal_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

void TrainProgress::keep(const std::string& line) const {
  clear();
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void TrainProgress::draw(double fraction, const std::string& text) {
  if (!terminal_ || now() - drawn_ < kRedraw) return;
  drawn_ = now();
  fmt::print(stderr, "\r{} {}\033[K", bar_text(fraction, kBarWidth), text);
  std::fflush(stderr);
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

void TrainProgress::stepped(const TrainingLine& line) {
  draw(static_cast<double>(line.step) / static_cast<double>(steps_), figures(line));
}

void TrainProgress::logged(const TrainingLine& line) {
  if (!terminal_) keep(figures(line));
}

void TrainProgress::evaluating(double fraction) { draw(fraction, "evaluating"); }

void TrainProgress::evaluated(int64_t step, const Evaluation& found, bool best) {
  std::string more;
  for (const auto& [name, value] : found.more)
    more += fmt::format("  {} {:.4g}", name, value);
  keep(fmt::format("step {}  {}: loss {:.4f}  {} {:.4f}{}{}", step, found.split,
                   found.loss, found.metric, found.value, more,
                   best ? "  (best)" : ""));
}

}  // namespace lagwise::cli
