#include "lagwise/cli/terminal/stop_signal.h"

#include <atomic>

#include "lagwise/core/errors.h"

namespace lagwise::cli {
namespace {

std::atomic<bool> asked_to_stop = false, reader_left = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

StopSignal::StopSignal(bool reader_gone) {
  asked_to_stop = reader_left = false;
  constexpr int kOnce = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  listen(SIGINT, kOnce);
  listen(SIGTERM, kOnce);
  listen(SIGHUP, SA_RESTART);
  if (reader_gone) listen(SIGPIPE, SA_RESTART);
}

void StopSignal::listen(int number, int flags) {
  struct sigaction action = {};
  action.sa_handler = [](int which) {
    asked_to_stop = true;
    if (which == SIGPIPE) reader_left = true;
  };
  action.sa_flags = flags;
  Kept kept{number, {}};
  sigaction(number, &action, &kept.before);
  if (number == SIGHUP && kept.before.sa_handler == SIG_IGN)
    sigaction(number, &kept.before, nullptr);
  kept_.push_back(kept);
}

StopSignal::~StopSignal() {
  for (const Kept& kept : kept_)
    if (kept.number != SIGPIPE || !reader_left)
      sigaction(kept.number, &kept.before, nullptr);
}

bool StopSignal::asked() { return asked_to_stop; }

void StopSignal::check(const char* said) {
  if (asked()) throw Interrupted(said);
}

}  // namespace lagwise::cli
