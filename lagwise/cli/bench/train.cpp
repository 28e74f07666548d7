// `lagwise bench train`: whole training steps, printed as they come.

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "bench/crossover.h"
#include "bench/timing.h"
#include "bench/train_cases.h"
#include "lagwise/cli/bench/rows.h"
#include "lagwise/cli/checks.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/machine.h"

namespace lagwise::cli {
namespace {

struct BenchTrainFlags {
  bool json = false, quick = false, recompute = false;
  int threads = 0;
  std::string only;
  std::vector<int64_t> lengths = bench::TrainPlan().lengths;
};

/// Our speed, and the baseline's or why it has none.
std::string describe(const bench::BenchRow& row, double tokens) {
  if (!row.note.empty())
    return fmt::format("{:.0f} tokens/s; the baseline was not run: {}",
                       tokens / row.ours_ms, row.note);
  return fmt::format("{:.0f} tokens/s; the baseline {:.0f}, {} of memory",
                     tokens / row.ours_ms, tokens / row.baseline_ms,
                     human_bytes(row.baseline_bytes));
}

void run_train_bench(const BenchTrainFlags& flags) {
  keep_freed_memory();
  bench::TrainPlan plan;
  plan.threads = flags.threads > 0 ? flags.threads : usable_cores();
  plan.lengths = flags.lengths;
  plan.quick = flags.quick;
  plan.only = flags.only;
  plan.recompute = flags.recompute;
  plan.progress = show_progress;
  RowPrinter printer(flags.json, bench::describe_settings());
  plan.row = [&](const bench::BenchRow& row) {
    const double tokens = 1e3 * double(row.batch * row.n);
    printer.row(row, {{"tokens_per_second", tokens / row.ours_ms}},
                describe(row, tokens));
  };
  bench::run_train_cases(plan);
  printer.finish();
}

void add_train_bench(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "train",
      "Time whole training steps with SPE and RoPE against the same in plain torch");
  const auto flags = std::make_shared<BenchTrainFlags>();
  verb->add_flag("--json", flags->json,
                 "Print a JSON array of rows instead of a table");
  verb->add_flag("--quick", flags->quick,
                 "Measure a sixteenth of each length, with one repetition");
  verb->add_flag("--recompute", flags->recompute,
                 "Let ours keep less and compute it anew, as train.recompute does");
  verb->add_option("--threads", flags->threads,
                   "Use this many threads, 1 to 256; all cores unless given")
      ->check(whole_number(1, 256));
  verb->add_option("--lengths", flags->lengths,
                   "Measure sequences of these lengths, 16 to 65536")
      ->delimiter(',')
      ->check(whole_number(16, 65536))
      ->capture_default_str();
  verb->add_option("--only", flags->only,
                   "Measure models with one encoding alone, or bf16 against f32")
      ->check(CLI::IsMember({"sine_spe", "rope", "bf16"}));
  verb->callback([flags] { run_train_bench(*flags); });
}

const RegisterVerb train_bench_registered({.name = "bench train",
                                           .place = 5,
                                           .add = add_train_bench});

}  // namespace
}  // namespace lagwise::cli
