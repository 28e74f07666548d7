// `lagwise data`: prepares data sets, so that training starts at once.

#include <fmt/format.h>

#include "lagwise/cli/verbs.h"

namespace lagwise::cli {
namespace {

constexpr const char* kAbout =
    "Reads or makes a data set and writes it as tokens: mapped shards with a manifest\n"
    "and a hash. Training reads such a set, and the raw files too. The set appears "
    "when\n"
    "it is whole; an earlier set of that name stands until then.";

void list(const CLI::App& verb) {
  for (const CLI::App* one : verb.get_subcommands(nullptr))
    fmt::print("{:<12} {}\n", one->get_name(), one->get_description());
  fmt::print(
      "\nlagwise data NAME --help shows the options of each; lagwise data PATH looks "
      "at "
      "a file or a folder.\n");
}

void add_data(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("data", "Prepare a data set for training");
  verb->footer(kAbout);
  add_verbs_of(*verb);
  verb->callback([verb] {
    if (verb->get_subcommands().empty()) list(*verb);
  });
}

const RegisterVerb data_registered({.name = "data", .place = 1, .add = add_data});

}  // namespace
}  // namespace lagwise::cli
