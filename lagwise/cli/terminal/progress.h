#pragma once

#include <chrono>
#include <functional>
#include <iosfwd>
#include <string>

namespace lagwise::cli {

/// How far a piece of work is, as one line without an end:
///
///     train  [########............]  40 %  note  1:05 left
///
/// `fraction` below 0: unknown, no bar. `seconds`: since the start. `colour`: the bar
/// in the colours of a terminal.
std::string progress_line(const std::string& what, double fraction, double seconds,
                          const std::string& note, bool colour);

/// "1:05", "2:03:04"
std::string clock_text(double seconds);

/// Shows progress on stderr: on a terminal one line that is drawn again, at most ten
/// times a second; else a plain line every ten seconds, so that a log stays short. No
/// colours where NO_COLOR is set. Work below a second shows nothing at all.
class Progress {
 public:
  explicit Progress(std::string what);

  /// For tests: another place, kind of place, and clock (in seconds).
  Progress(std::string what, std::ostream& out, bool terminal, bool colour,
           std::function<double()> clock);
  ~Progress();  ///< takes the line off a terminal
  Progress(const Progress&) = delete;

  void update(double fraction, const std::string& note = "");

  /// Takes the line off a terminal, so that something else can be printed.
  void clear();

 private:
  std::string what_;
  std::ostream& out_;
  bool terminal_, colour_, drawn_ = false;
  std::function<double()> clock_;
  double start_, next_;
};

}  // namespace lagwise::cli
