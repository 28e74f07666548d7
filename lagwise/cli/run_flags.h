#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "lagwise/train/run.h"

namespace lagwise::cli {

/// Which run a verb looks at: RUN, --last or --best, --data.
struct RunFlags {
  std::string run, data;
  bool last = false, best = false;

  Which which() const { return last ? Which::last : Which::best; }
};

void add_run_flags(CLI::App& verb, RunFlags& flags);

/// Opens the run and lets torch use the threads its recipe gives, else all cores.
/// What it has to say of itself goes to stderr.
Run open(const RunFlags& flags, bool with_task = true);

/// Reads the data of a run that was opened without it.
void open_later(Run& run);

}  // namespace lagwise::cli
