// `lagwise data`: makes and prepares data sets.

#include "lagwise/cli/data_music.h"
#include "lagwise/cli/verbs.h"

namespace lagwise::cli {

void add_data(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "Make and prepare data sets");
  data->require_subcommand(1);
  add_data_midi(*data);
  add_data_grooves(*data);
}

}  // namespace lagwise::cli
