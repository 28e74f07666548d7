// `lagwise bench generate`: tokens per second against the length of the context.

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/generate_cases.h"
#include "bench/runtime_cases.h"
#include "bench/timing.h"
#include "lagwise/cli/bench/rows.h"
#include "lagwise/cli/checks.h"
#include "lagwise/cli/machine.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/machine.h"

namespace lagwise::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kOurs = "linear sine_spe";

struct BenchGenerateFlags {
  bool json = false, quick = false;
  int threads = 0;
  std::string only;
  std::vector<int64_t> contexts = bench::GeneratePlan().contexts;
};

Json decoding_row_json(const bench::BenchRow& row) {
  Json json = {{"case", row.name},
               {"context", row.n},
               {"threads", row.threads},
               {"ours", kOurs},
               {"ours_ms", row.ours_ms},
               {"tokens_per_second", 1e3 / row.ours_ms},
               {"baseline", row.baseline},
               {"baseline_ms", row.baseline_ms},
               {"baseline_tokens_per_second", 1e3 / row.baseline_ms},
               {"ratio", row.ratio},
               {"estimated", !row.note.empty()},
               {"gflops", row.gflops},
               {"peak_gflops", row.peak_gflops}};
  if (!row.note.empty()) json["note"] = row.note;
  return json;
}

/// Of the runtime without torch, with what it was measured on.
Json runtime_row_json(const bench::RuntimeRow& row) {
  const std::vector<std::string> simd = usable_simd();
  return {{"case", "runtime"},
          {"engine", "small"},
          {"weights", row.weights},
          {"dim", row.dim},
          {"layers", row.layers},
          {"batch", row.batch},
          {"threads", row.threads},
          {"ours_ms", row.ours_ms},
          {"tokens_per_second", 1e3 * static_cast<double>(row.batch) / row.ours_ms},
          {"baseline", "torch"},
          {"baseline_ms", row.baseline_ms},
          {"ratio", row.ratio},
          {"weight_bytes", row.weight_bytes},
          {"read_gbps", row.read_gbps},
          {"fraction", row.fraction},
          {"cpu", cpu_model()},
          {"simd", simd.empty() ? "" : simd.front()}};
}

/// Prints each row as it is measured: a line of a table, or of a JSON array.
class Printer {
 public:
  Printer(bool json, const std::string& settings) : json_(json) {
    fmt::print(json ? stderr : stdout, "{}\n", settings);
    if (json) fmt::print("[");
  }

  void row(const bench::BenchRow& row) {
    show_progress("");
    if (!json_ && first_) print_heading();
    json_ ? print_json(row) : print_line(row);
    std::fflush(stdout);
    first_ = false;
  }

  void row(const bench::RuntimeRow& row) {
    show_progress("");
    if (json_) {
      fmt::print("{}\n  {}", first_ ? "" : ",", runtime_row_json(row).dump());
    } else {
      if (!runtime_) print_runtime_heading();
      fmt::print("{:>4} {:>7} {:>6} {:>3} {:>10.0f} {:>10.0f} {:>7.1f} {:>8.2f}\n",
                 row.dim, row.weights, row.batch, row.threads,
                 1e3 * static_cast<double>(row.batch) / row.ours_ms,
                 1e3 * static_cast<double>(row.batch) / row.baseline_ms, row.ratio,
                 row.fraction);
    }
    std::fflush(stdout);
    first_ = false, runtime_ = true;
  }

  void finish() {
    show_progress("");
    if (json_) fmt::print("\n]\n");
  }

 private:
  static void print_heading() {
    fmt::print(
        "tokens per second, one text at a time; ratio: how many times ours is faster\n"
        "~: estimated, as the line below says\n\n{:>8} {:>16}   {:<16} {:>10} {:>8}\n",
        "context", kOurs, "against", "", "ratio");
  }
  static void print_runtime_heading() {
    fmt::print(
        "\nwithout torch: tokens per second of all texts together; of read bandwidth: "
        "weights read per second\nover what a loop that only reads them "
        "reaches\n\n{:>4} {:>7} {:>6} {:>3} {:>10} {:>10} {:>7} {:>8}\n",
        "C", "weights", "texts", "t", "small", "torch", "ratio", "of read");
  }
  void print_json(const bench::BenchRow& row) const {
    fmt::print("{}\n  {}", first_ ? "" : ",", decoding_row_json(row).dump());
  }
  static void print_line(const bench::BenchRow& row) {
    fmt::print(
        "{:>8} {:>16.1f}   {:<16} {:>10} {:>8.2f}\n", row.n, 1e3 / row.ours_ms,
        row.baseline,
        fmt::format("{}{:.3g}", row.note.empty() ? "" : "~", 1e3 / row.baseline_ms),
        row.ratio);
    if (!row.note.empty()) fmt::print("         {}\n", row.note);
  }

  bool json_, first_ = true, runtime_ = false;
};

void run_generate_bench(const BenchGenerateFlags& flags) {
  keep_freed_memory();
  bench::GeneratePlan plan;
  plan.threads = flags.threads > 0 ? flags.threads : usable_cores();
  plan.quick = flags.quick;
  plan.only = flags.only;
  plan.contexts = flags.contexts;
  plan.progress = show_progress;
  Printer printer(flags.json, fmt::format("{} thread(s); {}", plan.threads,
                                          bench::describe_settings()));
  plan.on_row = [&](const bench::BenchRow& row) { printer.row(row); };
  if (flags.only != "runtime") bench::run_generate_cases(plan);
  if (flags.only.empty() || flags.only == "runtime") {
    bench::RuntimePlan small;
    small.threads = plan.threads, small.quick = plan.quick;
    small.progress = show_progress;
    bench::run_runtime_cases(small,
                             [&](const bench::RuntimeRow& row) { printer.row(row); });
  }
  printer.finish();
}

void add_generate_bench(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "generate",
      "Time writing one token after ever longer contexts, with state, cache and "
      "neither");
  const auto flags = std::make_shared<BenchGenerateFlags>();
  verb->add_flag("--json", flags->json,
                 "Print a JSON array of rows instead of a table");
  verb->add_flag("--quick", flags->quick, "Measure a small model at short contexts");
  verb->add_option("--threads", flags->threads,
                   "Use this many threads, 1 to 256; all cores unless given")
      ->check(whole_number(1, 256));
  verb->add_option("--only", flags->only, "Measure one group of cases alone")
      ->check(CLI::IsMember({"linear", "exact", "recompute", "constant", "runtime"}));
  verb->add_option("--contexts", flags->contexts,
                   "Measure after contexts of so many tokens, 16 to 1048576")
      ->delimiter(',')
      ->check(whole_number(16, 1048576))
      ->capture_default_str();
  verb->callback([flags] { run_generate_bench(*flags); });
}

const RegisterVerb generate_bench_registered({.name = "bench generate",
                                              .place = 7,
                                              .add = add_generate_bench});

}  // namespace
}  // namespace lagwise::cli
