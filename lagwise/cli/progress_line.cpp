#include "lagwise/cli/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace lagwise::cli {

void ProgressLine::show(const std::string& what, double fraction) {
  const auto now = std::chrono::steady_clock::now();
  if (!isatty(STDERR_FILENO) || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now, shown_ = true;
  fmt::print(stderr, "\r\033[K{} {:.0f} %", what, 100 * fraction);
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
  shown_ = false;
}

}  // namespace lagwise::cli
