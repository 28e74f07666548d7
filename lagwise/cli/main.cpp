#include <csignal>

#include "lagwise/cli/blas_core.h"
#include "lagwise/cli/program.h"
#include "lagwise/cli/verbs.h"

int main(int count, char** words) {
  using namespace lagwise::cli;
  restart_with_better_core(blas_core(), this_cpu(), words);
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its limit is a write that fails
  return run_program(verbs(), {words + 1, words + count});
}
