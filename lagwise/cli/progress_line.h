#pragma once

#include <chrono>
#include <string>

namespace lagwise::cli {

/// "[#####.....]" of `width` places between the brackets.
std::string bar_text(double fraction, int width);

/// A bar with words behind it on stderr that each next one overwrites, on a terminal;
/// nothing elsewhere. It is gone when this is.
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
