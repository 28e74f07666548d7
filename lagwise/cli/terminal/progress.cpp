#include "lagwise/cli/terminal/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>

namespace lagwise::cli {
namespace {

constexpr int kBar = 24;                                  // columns
constexpr double kRedraw = 0.1, kLines = 10, kFirst = 1;  // seconds

double now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

bool on_terminal() { return isatty(STDERR_FILENO) != 0; }

// https://no-color.org: set and not empty.
bool wants_colour() {
  const char* no = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return (no == nullptr || *no == '\0') &&
         (term == nullptr || std::string(term) != "dumb");
}

std::string bar(double fraction, bool colour) {
  const auto done = static_cast<size_t>(std::lround(fraction * kBar));
  const std::string full(done, '#'), rest(kBar - done, '.');
  if (!colour) return "[" + full + rest + "]";
  return "[\033[32m" + full + "\033[2;39m" + rest + "\033[0m]";
}

}  // namespace

std::string clock_text(double seconds) {
  const auto all = static_cast<int64_t>(std::lround(std::clamp(seconds, 0.0, 3.6e9)));
  const int64_t hours = all / 3600, minutes = all / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, all % 60)
                   : fmt::format("{}:{:02}", minutes, all % 60);
}

std::string progress_line(const std::string& what, double fraction, double seconds,
                          const std::string& note, bool colour) {
  const std::string after = note.empty() ? "" : "  " + note;
  if (!(fraction >= 0))
    return fmt::format("{}{}  {}", what, after, clock_text(seconds));
  fraction = std::min(fraction, 1.0);
  const double left = fraction > 0 ? seconds * (1 - fraction) / fraction : 0;
  const std::string time =
      fraction > 0 && fraction < 1 ? "  " + clock_text(left) + " left" : "";
  return fmt::format("{}  {}  {:3.0f} %{}{}", what, bar(fraction, colour),
                     std::floor(fraction * 100), after, time);
}

Progress::Progress(std::string what)
    : Progress(std::move(what), std::cerr, on_terminal(), wants_colour(), now) {}

Progress::Progress(std::string what, std::ostream& out, bool terminal, bool colour,
                   std::function<double()> clock)
    : what_(std::move(what)),
      out_(out),
      terminal_(terminal),
      colour_(colour),
      clock_(std::move(clock)),
      start_(clock_()),
      next_(start_ + (terminal ? kFirst : kLines)) {}

Progress::~Progress() { clear(); }

void Progress::update(double fraction, const std::string& note) {
  const double time = clock_();
  if (time < next_) return;
  next_ = time + (terminal_ ? kRedraw : kLines);
  const std::string line =
      progress_line(what_, fraction, time - start_, note, terminal_ && colour_);
  if (terminal_)
    out_ << "\r\033[K" << line << std::flush;
  else
    out_ << line << '\n' << std::flush;
  drawn_ = true;
}

void Progress::clear() {
  if (terminal_ && drawn_) out_ << "\r\033[K" << std::flush;
  drawn_ = false;
}

}  // namespace lagwise::cli
