// `lagwise bench generate`: tokens per second against the length of the context.

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/generate_cases.h"
#include "bench/timing.h"
#include "lagwise/cli/bench_rows.h"
#include "lagwise/cli/bench_verbs.h"
#include "lagwise/cli/checks.h"

namespace lagwise::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  bool json = false, quick = false;
  int threads = 0;
};

void print_json(const std::vector<bench::BenchRow>& rows) {
  Json array = Json::array();
  for (const bench::BenchRow& row : rows)
    array.push_back({{"case", row.name},
                     {"context", row.n},
                     {"threads", row.threads},
                     {"ours", "linear sine_spe"},
                     {"ours_ms", row.ours_ms},
                     {"tokens_per_second", 1e3 / row.ours_ms},
                     {"baseline", row.baseline},
                     {"baseline_ms", row.baseline_ms},
                     {"baseline_tokens_per_second", 1e3 / row.baseline_ms},
                     {"ratio", row.ratio},
                     {"gflops", row.gflops},
                     {"peak_gflops", row.peak_gflops}});
  fmt::print("{}\n", array.dump(2));
}

/// A line for each context, a column for each way to write on.
void print_table(const std::vector<bench::BenchRow>& rows) {
  fmt::print(
      "tokens per second, one text at a time; in brackets how many times ours is "
      "faster\n\n{:>8} {:>16}",
      "context", "linear sine_spe");
  for (const bench::BenchRow& row : rows)
    if (row.n == rows[0].n) fmt::print(" {:>18}", row.baseline);
  int64_t last = -1;
  for (const bench::BenchRow& row : rows) {
    if (row.n != last) fmt::print("\n{:>8} {:>16.1f}", row.n, 1e3 / row.ours_ms);
    last = row.n;
    fmt::print(" {:>18}",
               fmt::format("{:.1f} ({:.2f})", 1e3 / row.baseline_ms, row.ratio));
  }
  fmt::print("\n");
}

void run(const Flags& flags) {
  bench::keep_freed_memory();
  bench::GeneratePlan plan;
  plan.threads = flags.threads > 0 ? flags.threads : bench::machine_cores();
  plan.quick = flags.quick;
  plan.progress = show_progress;
  const std::vector<bench::BenchRow> rows = bench::run_generate_cases(plan);
  show_progress("");
  fmt::print(stderr, "{} thread(s); {}\n", plan.threads, bench::describe_settings());
  flags.json ? print_json(rows) : print_table(rows);
}

}  // namespace

void add_generate_bench(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "generate",
      "Time writing one token after ever longer contexts, with state, cache and "
      "neither");
  const auto flags = std::make_shared<Flags>();
  verb->add_flag("--json", flags->json,
                 "Print a JSON array of rows instead of a table");
  verb->add_flag("--quick", flags->quick, "Measure a small model at short contexts");
  verb->add_option("--threads", flags->threads,
                   "Use this many threads, 1 to 256; all cores unless given")
      ->check(whole_number(1, 256));
  verb->callback([flags] { run(*flags); });
}

}  // namespace lagwise::cli
