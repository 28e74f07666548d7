#pragma once

#include <chrono>

namespace lagwise {

/// The clock that durations are measured with: it never jumps.
using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace lagwise
