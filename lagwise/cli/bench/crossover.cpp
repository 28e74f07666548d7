// `lagwise bench crossover`: from which length linear attention beats exact attention.

#include "bench/crossover.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/crossover_text.h"
#include "bench/timing.h"
#include "lagwise/cli/bench/rows.h"
#include "lagwise/cli/checks.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/machine.h"
#include "lagwise/data/formats/atomic_file.h"

namespace lagwise::cli {
namespace {

using Json = nlohmann::ordered_json;

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

void add_crossover_bench(CLI::App& bench) {
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
      ->check(whole_number(1, 256));
  verb->add_option("--html", flags->html,
                   "Write a self-contained page to this file as well")
      ->check(file_name());
  verb->callback([flags] { run_crossover(*flags); });
}

const RegisterVerb crossover_bench_registered({.name = "bench crossover",
                                               .place = 6,
                                               .add = add_crossover_bench});

}  // namespace
}  // namespace lagwise::cli
