// `lagwise bench`: how fast this machine runs lagwise, and against what.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/crossover.h"
#include "bench/crossover_text.h"
#include "bench/encoding_cases.h"
#include "bench/exact_cases.h"
#include "bench/favor_cases.h"
#include "bench/linear_cases.h"
#include "bench/timing.h"
#include "lagwise/cli/bench/rows.h"
#include "lagwise/cli/bench/verbs.h"
#include "lagwise/cli/checks.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/machine.h"
#include "lagwise/data/formats/atomic_file.h"

namespace lagwise::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostThreads = 256;

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

struct CrossoverFlags {
  bool json = false, quick = false;
  int threads = 0;
  std::string html;
};

Json curve_json(const bench::Curve& curve) {
  Json points = Json::array();
  for (const bench::Point& point : curve.points) {
    points.push_back({{"n", point.n}, {"ms", point.ms}, {"bytes", point.bytes}});
  }
  return {{"label", curve.label}, {"points", points}, {"stopped", curve.stopped}};
}

Json panel_json(const bench::Panel& panel) {
  Json curves = {curve_json(panel.exact)};
  Json crossings = Json::object();
  for (const bench::Curve& curve : panel.linear) {
    curves.push_back(curve_json(curve));
    crossings[curve.label] = bench::describe(bench::find_crossing(panel.exact, curve));
  }
  return {{"direction", panel.direction},
          {"d", panel.d},
          {"crossings", crossings},
          {"curves", curves}};
}

void print_crossover(const std::vector<bench::Panel>& panels,
                     const std::string& settings) {
  fmt::print("{}\n{}", settings, bench::crossover_table(panels));
  // One chart a direction is enough to see the slopes: that of D = 64.
  for (const bench::Panel& panel : panels) {
    if (panel.d == 64) fmt::print("{}", bench::crossover_chart(panel));
  }
}

void run_crossover(const CrossoverFlags& flags) {
  if (!flags.html.empty()) data::check_replaceable(flags.html);
  keep_freed_memory();
  bench::CrossoverPlan plan =
      flags.quick ? bench::quick_crossover() : bench::CrossoverPlan();
  plan.threads = flags.threads > 0 ? flags.threads : usable_cores();
  plan.progress = show_progress;
  const std::vector<bench::Panel> panels = bench::run_crossover(plan);
  show_progress("");
  const std::string settings = fmt::format("8 heads, {} thread(s); {}", plan.threads,
                                           bench::describe_settings());
  if (!flags.html.empty())
    data::replace_file(flags.html, bench::crossover_html(panels, settings));
  if (!flags.json) return print_crossover(panels, settings);
  Json array = Json::array();
  for (const bench::Panel& panel : panels) array.push_back(panel_json(panel));
  fmt::print(stderr, "{}\n", settings);
  fmt::print("{}\n", array.dump(2));
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
      ->check(whole_number(1, kMostThreads))
      ->capture_default_str();
  verb->callback([flags, run] { run_linear(*flags, run); });
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
      ->check(whole_number(1, kMostThreads))
      ->capture_default_str();
  verb->add_option("--only", flags->only,
                   "Measure these families alone, such as rotation")
      ->delimiter(',');
  verb->callback([flags] { run_encodings(*flags); });
}

void add_exact(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "exact", "Time exact attention with tables by lag against torch and itself");
  const auto flags = std::make_shared<ExactFlags>();
  verb->add_flag("--json", flags->json,
                 "Print a JSON array of rows instead of a table");
  verb->add_flag("--quick", flags->quick,
                 "Measure shorter sequences with fewer repetitions");
  verb->add_option("--threads", flags->threads,
                   "Use this many threads, 1 to 256; all cores unless given")
      ->check(whole_number(1, kMostThreads));
  verb->add_option("--only", flags->only, "Measure one group of cases alone")
      ->check(CLI::IsMember(
          {"alibi", "huang", "causal", "threads", "memory", "step", "toeplitz"}));
  verb->callback([flags] { run_exact(*flags); });
}

void add_crossover(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "crossover",
      "Find the length from which linear attention beats naive exact attention");
  const auto flags = std::make_shared<CrossoverFlags>();
  verb->add_flag("--json", flags->json,
                 "Print a JSON array of panels instead of tables");
  verb->add_flag("--quick", flags->quick,
                 "Measure fewer widths and lengths, in under a minute");
  verb->add_option("--threads", flags->threads,
                   "Use this many threads, 1 to 256; all cores unless given")
      ->check(whole_number(1, kMostThreads));
  verb->add_option("--html", flags->html,
                   "Write a self-contained page to this file as well")
      ->check(file_name());
  verb->callback([flags] { run_crossover(*flags); });
}

void add_bench(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Time lagwise on this machine");
  bench->require_subcommand(1);
  add_linear(*bench, "linear",
             "Time linear attention against the token-by-token loop, torch and itself",
             bench::run_linear_cases);
  add_linear(*bench, "favor",
             "Time attention with FAVOR+ features against elu1 with as many",
             bench::run_favor_cases);
  add_encodings_bench(*bench);
  add_exact(*bench);
  add_train_bench(*bench);
  add_crossover(*bench);
  add_generate_bench(*bench);
}

const RegisterVerb bench_registered({.name = "bench", .place = 9, .add = add_bench});

}  // namespace
}  // namespace lagwise::cli
