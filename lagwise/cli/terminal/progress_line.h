#pragma once

#include <chrono>
#include <string>

namespace lagwise::cli {

/// "[#####.....]" of `width` places between the brackets.
std::string bar_text(double fraction, int width);

/// A progress bar with words behind it, on one line of stderr that is drawn again and
/// again. Shown on a terminal only, and removed by the destructor.
class ProgressLine {
 public:
  ~ProgressLine() { clear(); }
  void show(const std::string& what, double fraction);  ///< at most ten times a second
  void clear();

 private:
  std::chrono::steady_clock::time_point last_ = {};
  bool shown_ = false;
};

}  // namespace lagwise::cli
