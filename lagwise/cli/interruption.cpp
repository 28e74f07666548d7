#include "lagwise/cli/interruption.h"

#include <csignal>

#include "lagwise/core/errors.h"

namespace lagwise::cli {
namespace {

volatile std::sig_atomic_t signalled = 0;
struct sigaction before_int, before_term;

void note(int) { signalled = 1; }

}  // namespace

Interruption::Interruption() {
  signalled = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one ends the process
  sigaction(SIGINT, &action, &before_int);
  sigaction(SIGTERM, &action, &before_term);
}

Interruption::~Interruption() {
  sigaction(SIGINT, &before_int, nullptr);
  sigaction(SIGTERM, &before_term, nullptr);
}

bool Interruption::asked() { return signalled != 0; }

void Interruption::check(const char* said) {
  if (asked()) throw Interrupted(said);
}

}  // namespace lagwise::cli
