#include "lagwise/cli/terminal/signal_thread.h"

#include <unistd.h>

#include <csignal>
#include <system_error>
#include <thread>

namespace lagwise::cli {

void receive_signals_apart() {
  sigset_t sent, before;
  sigfillset(&sent);
  // What a thread brings upon itself reaches that thread alone, and where it does the
  // stack is in order, or the process at its end.
  for (const int own :
       {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPIPE})
    sigdelset(&sent, own);
  pthread_sigmask(SIG_BLOCK, &sent, &before);  // new threads begin with what blocks us
  try {
    std::thread([sent] {
      pthread_sigmask(SIG_UNBLOCK, &sent, nullptr);
      while (true) pause();
    }).detach();
  } catch (const std::system_error&) {  // no thread to be had: better late than never
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
}

}  // namespace lagwise::cli
