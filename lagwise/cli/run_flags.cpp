#include "lagwise/cli/run_flags.h"

#include <fmt/format.h>

#include "lagwise/cli/checks.h"
#include "lagwise/core/machine.h"
#include "lagwise/train/threads.h"

namespace lagwise::cli {
namespace {

void print_notes(Run& run) {
  for (const std::string& note : run.notes) fmt::print(stderr, "lagwise: {}\n", note);
  run.notes.clear();
}

}  // namespace

void add_run_flags(CLI::App& verb, RunFlags& flags) {
  verb.add_option("RUN", flags.run, "The folder of a run")
      ->required()
      ->check(file_name());
  CLI::Option* last =
      verb.add_flag("--last", flags.last, "Take the newest checkpoint, not the best");
  verb.add_flag("--best", flags.best,
                "Take the best checkpoint on the split valid (the default)")
      ->excludes(last);
  verb.add_option("--data", flags.data,
                  "Where the data is now, if not where the recipe says")
      ->check(file_name());
}

Run open(const RunFlags& flags, bool with_task) {
  keep_freed_memory();
  Run run = open_run(flags.run, flags.which(), flags.data, with_task);
  print_notes(run);
  const int64_t threads = run.recipe.train.threads;
  pin_threads(threads > 0 ? threads : usable_cores());
  return run;
}

void open_later(Run& run) {
  open_data(run);
  print_notes(run);
}

}  // namespace lagwise::cli
