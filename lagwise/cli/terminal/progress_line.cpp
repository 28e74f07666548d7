#include "lagwise/cli/terminal/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace lagwise::cli {
namespace {

constexpr int kWidth = 24;  // of the bar

}  // namespace

std::string bar_text(double fraction, int width) {
  const auto full = static_cast<size_t>(
      std::lround(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(width)));
  const auto rest = static_cast<size_t>(width) - full;
  return "[" + std::string(full, '#') + std::string(rest, '.') + "]";
}

void ProgressLine::show(const std::string& what, double fraction) {
  const auto now = std::chrono::steady_clock::now();
  if (!isatty(STDERR_FILENO) || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now, shown_ = true;
  // Not fmt::print, which throws where the terminal is gone.
  std::fputs(("\r\033[K" + bar_text(fraction, kWidth) + " " + what).c_str(), stderr);
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace lagwise::cli
