// `lagwise bench`: how fast this machine runs lagwise, and against what. Its verbs are
// the other files of this folder.

#include "lagwise/cli/verbs.h"

namespace lagwise::cli {
namespace {

void add_bench(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Time lagwise on this machine");
  bench->require_subcommand(1);
  add_verbs_of(*bench);
}

const RegisterVerb bench_registered({.name = "bench", .place = 9, .add = add_bench});

}  // namespace
}  // namespace lagwise::cli
