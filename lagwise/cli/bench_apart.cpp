// `lagwise bench` of the program itself: the baselines take as long to compile as all
// other verbs together, so they are linked into a second program, lagwise-bench, which
// is the same one with this verb in it. This file hands the words over to it.

#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "lagwise/cli/verbs.h"

namespace lagwise::cli {
namespace {

namespace fs = std::filesystem;

/// Becomes lagwise-bench, which lies beside this program.
[[noreturn]] void become_bench(const std::vector<std::string>& words) {
  const fs::path program =
      fs::read_symlink("/proc/self/exe").parent_path() / "lagwise-bench";
  std::string bench = "bench", name = "lagwise";
  std::vector<char*> all = {name.data(), bench.data()};
  std::vector<std::string> kept = words;
  for (std::string& word : kept) all.push_back(word.data());
  all.push_back(nullptr);
  execv(program.c_str(), all.data());
  throw std::runtime_error("bench is a program of its own, " + program.string() +
                           ", which cannot be run; make build makes it, and in Python "
                           "there is python -m lagwise.bench");
}

void add_bench_apart(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Time lagwise on this machine");
  bench->prefix_command();    // everything after it is for the other program,
  bench->set_help_flag();     // --help too, which neither this verb
  bench->fallthrough(false);  // nor the program above it may take
  bench->callback([bench] { become_bench(bench->remaining()); });
}

const RegisterVerb bench_registered({.name = "bench",
                                     .place = 9,
                                     .add = add_bench_apart});

}  // namespace
}  // namespace lagwise::cli
