#include "lagwise/cli/shortened_file.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

#include "lagwise/cli/program.h"
#include "lagwise/data/formats/mapped_places.h"

namespace lagwise::cli {
namespace {

// Only what a handler may call: no streams, no memory.
void say(const char* text) {
  const ssize_t ignored = write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(ignored);
}

void end_of_pages(int /*signal*/, siginfo_t* about, void* /*context*/) {
  const char* const file = data::MappedPlaces::name_at(about->si_addr);
  if (file == nullptr) return;  // not ours: the same again, now as the system has it
  say("lagwise: ");
  say(file);
  say(": expected the file as it was when it was opened; it was cut short, or the disk "
      "no longer gives it\n");
  _exit(kData);
}

}  // namespace

void report_shortened_files() {
  struct sigaction action = {};
  action.sa_sigaction = end_of_pages;
  action.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace lagwise::cli
