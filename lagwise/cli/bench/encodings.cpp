// `lagwise bench encodings`: positional encodings against plain torch and a copy.

#include <memory>
#include <string>
#include <vector>

#include "bench/encoding_cases.h"
#include "bench/timing.h"
#include "lagwise/cli/bench/rows.h"
#include "lagwise/cli/checks.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/machine.h"

namespace lagwise::cli {
namespace {

struct EncodingFlags {
  bool json = false, quick = false;
  int threads = 2;
  std::vector<std::string> only;
};

void run_encodings(const EncodingFlags& flags) {
  keep_freed_memory();
  bench::EncodingPlan plan;
  plan.threads = flags.threads;
  plan.quick = flags.quick;
  plan.only = flags.only;
  plan.progress = show_progress;
  print_rows(flags.json, bench::run_encoding_cases(plan));
}

void add_encodings_bench(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "encodings", "Time positional encodings against plain torch, a copy and itself");
  const auto flags = std::make_shared<EncodingFlags>();
  verb->add_flag("--json", flags->json,
                 "Print a JSON array of rows instead of a table");
  verb->add_flag("--quick", flags->quick,
                 "Measure shorter sequences with fewer repetitions");
  verb->add_option("--threads", flags->threads, "Use this many threads, 1 to 256")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  verb->add_option("--only", flags->only,
                   "Measure these families alone, such as rotation")
      ->delimiter(',');
  verb->callback([flags] { run_encodings(*flags); });
}

const RegisterVerb encodings_bench_registered({.name = "bench encodings",
                                               .place = 3,
                                               .add = add_encodings_bench});

}  // namespace
}  // namespace lagwise::cli
