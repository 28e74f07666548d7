#include "lagwise/cli/stop_signal.h"

#include <atomic>

namespace lagwise::cli {
namespace {

std::atomic<bool> asked_to_stop = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

StopSignal::StopSignal() {
  asked_to_stop = false;
  struct sigaction action = {};
  action.sa_handler = [](int) { asked_to_stop = true; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

bool StopSignal::asked() { return asked_to_stop; }

}  // namespace lagwise::cli
