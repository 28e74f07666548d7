// `lagwise bench exact`: exact attention with tables by lag against torch.

#include <memory>
#include <string>

#include "bench/exact_cases.h"
#include "bench/timing.h"
#include "lagwise/cli/bench/rows.h"
#include "lagwise/cli/checks.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/machine.h"

namespace lagwise::cli {
namespace {

struct ExactFlags {
  bool json = false, quick = false;
  int threads = 0;
  std::string only;
};

void run_exact(const ExactFlags& flags) {
  keep_freed_memory();
  bench::ExactPlan plan;
  plan.threads = flags.threads > 0 ? flags.threads : usable_cores();
  plan.quick = flags.quick;
  plan.only = flags.only;
  plan.progress = show_progress;
  RowPrinter printer(flags.json, bench::describe_settings());
  plan.on_row = [&](const bench::BenchRow& row) { printer.row(row); };
  plan.note = [&](const std::string& text) { printer.note(text); };
  bench::run_exact_cases(plan);
  printer.finish();
}

void add_exact_bench(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "exact", "Time exact attention with tables by lag against torch and itself");
  const auto flags = std::make_shared<ExactFlags>();
  verb->add_flag("--json", flags->json,
                 "Print a JSON array of rows instead of a table");
  verb->add_flag("--quick", flags->quick,
                 "Measure shorter sequences with fewer repetitions");
  verb->add_option("--threads", flags->threads,
                   "Use this many threads, 1 to 256; all cores unless given")
      ->check(whole_number(1, 256));
  verb->add_option("--only", flags->only, "Measure one group of cases alone")
      ->check(CLI::IsMember(
          {"alibi", "huang", "causal", "threads", "memory", "step", "toeplitz"}));
  verb->callback([flags] { run_exact(*flags); });
}

const RegisterVerb exact_bench_registered({.name = "bench exact",
                                           .place = 4,
                                           .add = add_exact_bench});

}  // namespace
}  // namespace lagwise::cli
