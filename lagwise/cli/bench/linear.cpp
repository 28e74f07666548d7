// `lagwise bench linear` and `lagwise bench favor`: linear attention against the loop,
// torch and itself.

#include <algorithm>
#include <memory>
#include <vector>

#include "bench/favor_cases.h"
#include "bench/linear_cases.h"
#include "bench/timing.h"
#include "lagwise/cli/bench/rows.h"
#include "lagwise/cli/checks.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/machine.h"

namespace lagwise::cli {
namespace {

struct LinearFlags {
  bool json = false, quick = false;
  std::vector<int> threads = {1};
};

using LinearCases = std::vector<bench::BenchRow> (*)(const bench::LinearPlan&);

void run_linear(const LinearFlags& flags, LinearCases run) {
  keep_freed_memory();
  bench::LinearPlan plan;
  plan.threads = flags.threads;
  plan.most_threads = std::max(
      usable_cores(), *std::max_element(plan.threads.begin(), plan.threads.end()));
  plan.quick = flags.quick;
  plan.progress = show_progress;
  print_rows(flags.json, run(plan));
}

/// A verb that prints a table of BenchRow.
void add_linear(CLI::App& bench, const char* name, const char* summary,
                LinearCases run) {
  CLI::App* verb = bench.add_subcommand(name, summary);
  const auto flags = std::make_shared<LinearFlags>();
  verb->add_flag("--json", flags->json,
                 "Print a JSON array of rows instead of a table");
  verb->add_flag("--quick", flags->quick,
                 "Measure shorter sequences with fewer repetitions");
  verb->add_option(
          "--threads", flags->threads,
          "Compare with baselines at these thread counts, 1 to 256, such as 1,2")
      ->delimiter(',')
      ->check(whole_number(1, 256))
      ->capture_default_str();
  verb->callback([flags, run] { run_linear(*flags, run); });
}

void add_linear_bench(CLI::App& bench) {
  add_linear(bench, "linear",
             "Time linear attention against the token-by-token loop, torch and itself",
             bench::run_linear_cases);
}

void add_favor_bench(CLI::App& bench) {
  add_linear(bench, "favor",
             "Time attention with FAVOR+ features against elu1 with as many",
             bench::run_favor_cases);
}

const RegisterVerb linear_bench_registered({.name = "bench linear",
                                            .place = 1,
                                            .add = add_linear_bench});

const RegisterVerb favor_bench_registered({.name = "bench favor",
                                           .place = 2,
                                           .add = add_favor_bench});

}  // namespace
}  // namespace lagwise::cli
