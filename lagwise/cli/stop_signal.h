#pragma once

#include <csignal>

namespace lagwise::cli {

/// While this lives the first Ctrl-C (or SIGTERM) only asks to stop; a second one goes
/// to the handler that was installed before, which usually ends the process.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  static bool asked();

 private:
  struct sigaction interrupt_ = {}, terminate_ = {};
};

}  // namespace lagwise::cli
