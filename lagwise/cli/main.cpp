#include <unistd.h>

#include <csignal>

#include "lagwise/cli/blas_core.h"
#include "lagwise/cli/program.h"
#include "lagwise/cli/shortened_file.h"
#include "lagwise/cli/terminal/signal_thread.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/usable_memory.h"

int main(int count, char** words) {
  using namespace lagwise::cli;
  restart_with_better_core(blas_core(), this_cpu(), words);
  receive_signals_apart();
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its limit is a write that fails
  report_shortened_files();
#if !defined(__SANITIZE_ADDRESS__)  // whose own memory would not fit
  lagwise::keep_within_usable_memory();
#endif
  const int code = run_program(verbs(), {words + 1, words + count});
  // Where a process was lost the others are waited for: they go at once, without the
  // tenth of a second that torch takes to unregister its operators, while its thread
  // that watches the store of the lost one spins.
  if (code == kPeerLost) _exit(code);
  return code;
}
