// `lagwise bench dist`: what processes send each other, and what they cost.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/dist_cases.h"
#include "lagwise/cli/bench/rows.h"
#include "lagwise/cli/child.h"
#include "lagwise/cli/launch/rank_processes.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/machine.h"
#include "lagwise/dist/gloo_peers.h"

namespace lagwise::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int kRounds = 3;
constexpr const char* kSent = "rank 0 sent ";  // as `lagwise train` ends in a job

struct BenchDistFlags {
  bool json = false, quick = false;
  int ranks = 2;
};

/// A folder that goes with us.
struct Scratch {
  fs::path path =
      fs::temp_directory_path() / fmt::format("lagwise-bench-dist-{}", getpid());
  Scratch() { fs::create_directories(path); }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

/// Steps of a decoder on sequences made on the spot.
struct TrainedModel {
  int64_t layers, dim, rows, length, steps;
  int64_t warm_up;  // steps that do not count
  std::string recipe(int ranks, int64_t threads) const {
    return fmt::format(
        "[model]\nlayers = {}\ndim = {}\nheads = {}\n[data]\ntask = \"markov\"\nlength "
        "= {}\n[train]\nsteps = {}\nbatch = {}\nleaves = {}\nthreads = {}\nlog_every = "
        "1\neval_examples = 1\neval_every = 0\ncheckpoint_every = 100000\n",
        layers, dim, dim / 64, length, steps, rows, std::max(ranks, 2), threads);
  }
};

/// The mean seconds of a step in a metrics.jsonl.
double seconds_a_step(const fs::path& run, int64_t warm_up) {
  std::ifstream in(run / "metrics.jsonl");
  std::vector<double> seconds;
  for (std::string line; std::getline(in, line);) {
    const Json json = Json::parse(line);
    if (json.contains("lr")) seconds.push_back(json["seconds"].get<double>());
  }
  const auto first = static_cast<size_t>(warm_up);
  if (seconds.size() <= first + 1)
    throw std::runtime_error("the run in " + run.string() + " did not train");
  return (seconds.back() - seconds[first]) /
         static_cast<double>(seconds.size() - first - 1);
}

struct Trained {
  double seconds = 0;  // of a step
  int64_t bytes = 0;   // that rank 0 sent in a step
  int64_t parameters = 0;
};

Trained train_with(const Scratch& scratch, const TrainedModel& model, int ranks,
                   int64_t threads) {
  const std::string recipe = (scratch.path / "bench.toml").string();
  std::ofstream(recipe) << model.recipe(ranks, threads);
  const fs::path run = scratch.path / fmt::format("of-{}", ranks);
  const std::string log = (scratch.path / fmt::format("{}.log", ranks)).string();
  fs::remove_all(run), fs::remove(log);
  std::vector<std::string> words = {"train", recipe, "--out", run.string()};
  if (ranks > 1) words.insert(words.begin(), {"launch", "-n", std::to_string(ranks)});
  // The words of rank 0 go where those of the launcher go.
  Child child(words, log);
  int code = 0;
  while (!child.ended(code)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (code != 0)
    throw std::runtime_error("training ended with code " + std::to_string(code) + ": " +
                             last_line(log));
  Trained trained{seconds_a_step(run, model.warm_up)};
  std::ifstream about(run / "run.json");
  trained.parameters = Json::parse(about)["parameters"].get<int64_t>();
  const std::string said = last_line(log, kSent);
  if (!said.empty()) trained.bytes = std::stoll(said);
  return trained;
}

double middle(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

Json row_of_traffic(const bench::SequenceTraffic& traffic, int64_t at_first) {
  return {{"case", "sequence"},
          {"n", traffic.n},
          {"ranks", traffic.ranks},
          {"bytes_per_step", traffic.bytes_per_step},
          {"ratio", static_cast<double>(traffic.bytes_per_step) /
                        static_cast<double>(at_first)}};
}

/// Processes with one share of the cores each, against one process with all of them.
Json row_of_overhead(const BenchDistFlags& flags) {
  const Scratch scratch;
  const TrainedModel model = flags.quick ? TrainedModel{2, 64, 8, 128, 12, 5}
                                         : TrainedModel{4, 256, 8, 512, 26, 5};
  const int64_t all = std::max(usable_cores(), flags.ranks), each = all / flags.ranks;
  std::vector<double> ratios, alone, together;
  int64_t bytes = 0;
  for (int round = 0; round < (flags.quick ? 1 : kRounds); ++round) {
    show_progress(fmt::format("one process and several, round {}", round + 1));
    const Trained one = train_with(scratch, model, 1, all),
                  several = train_with(scratch, model, flags.ranks, each);
    alone.push_back(one.seconds), together.push_back(several.seconds);
    ratios.push_back(several.seconds / one.seconds);
    bytes = several.bytes;
  }
  show_progress("");
  return {{"case", "data"},
          {"n", model.length},
          {"ranks", flags.ranks},
          {"threads_each", each},
          {"bytes_per_step", bytes},
          {"step_ms", 1e3 * middle(together)},
          {"alone_step_ms", 1e3 * middle(alone)},
          {"ratio", middle(ratios)}};
}

/// A step of one node by itself, with all its cores.
Json row_of_node(const BenchDistFlags& flags) {
  const Scratch scratch;
  const TrainedModel model = flags.quick ? TrainedModel{2, 64, 8, 128, 6, 2}
                                         : TrainedModel{8, 512, 8, 512, 5, 1};
  show_progress("a step of one node");
  const Trained alone = train_with(scratch, model, 1, usable_cores());
  show_progress("");
  return {{"case", "node"},
          {"n", model.length},
          {"ranks", 1},
          {"threads_each", usable_cores()},
          {"parameters", alone.parameters},
          {"tokens_per_step", model.rows * model.length},
          {"step_ms", 1e3 * alone.seconds}};
}

/// How fast a process of this machine could exchange at most.
Json row_of_own_rate(const BenchDistFlags& flags) {
  show_progress("sums over loopback");
  const int64_t numbers = flags.quick ? 1 << 20 : 25 << 20;
  const double rate = bench::own_rate(numbers, free_port());
  show_progress("");
  return {{"case", "loopback"},
          {"ranks", 2},
          {"bytes_per_step", 4 * numbers},
          {"gbit_per_second", 1e-9 * rate}};
}

/// What the step of a node and the rate of a line come to with many nodes.
std::vector<Json> rows_of_scale(const Json& node, const Json& loopback) {
  std::vector<Json> rows;
  const double step = 1e-3 * node["step_ms"].get<double>(),
               own = 1e9 * loopback["gbit_per_second"].get<double>();
  for (const int nodes : {8, 64, 1024})
    for (const double gbits : {1.0, 10.0, 100.0}) {
      const bench::Scaled found = bench::scaled(step, node["parameters"].get<int64_t>(),
                                                nodes, 1e9 * gbits, own);
      // Nodes compute for nine tenths of the time where a step is nine exchanges long.
      const double tokens =
          node["tokens_per_step"].get<double>() * 9 * found.exchange / step;
      rows.push_back({{"case", "scale"},
                      {"ranks", nodes},
                      {"gbit_per_second", gbits},
                      {"bytes_per_step", found.bytes_per_step},
                      {"exchange_ms", 1e3 * found.exchange},
                      {"busy", found.busy},
                      {"tokens_for_nine_tenths", static_cast<int64_t>(tokens)}});
    }
  return rows;
}

constexpr const char* kSequenceTitle =
    "Bytes that a rank sends in a step of one layer, where ranks share a sequence; "
    "ratio: "
    "to the\nfirst length.\n\n       n  ranks   bytes a step   ratio\n";
constexpr const char* kDataTitle =
    "\nBytes that rank 0 sends in a step of a whole model, where ranks share a batch; "
    "ratio: its time\nto that of one process with as many threads.\n\n       n  ranks  "
    " "
    "bytes a step   ratio   step ms  alone ms\n";
constexpr const char* kScaleTitle =
    "\nMany nodes with a batch like that each: gradients that a node sends in a step, "
    "and "
    "how much of\nthe time it computes; tokens: of a node in a step, for it to compute "
    "nine tenths of the time.\n\n   nodes  Gbit/s   bytes a step  exchange ms    busy  "
    "   "
    "tokens\n";

/// Rows of one kind stand together, below their title.
void print_line_of(const Json& row) {
  const auto whole = [&](const char* name) { return row[name].get<int64_t>(); };
  const auto real = [&](const char* name) { return row[name].get<double>(); };
  const std::string kind = row["case"];
  if (kind == "sequence")
    fmt::print("{:>8} {:>6} {:>14} {:>7.2f}\n", whole("n"), whole("ranks"),
               whole("bytes_per_step"), real("ratio"));
  else if (kind == "data")
    fmt::print("{}{:>8} {:>6} {:>14} {:>7.2f} {:>9.1f} {:>9.1f}\n", kDataTitle,
               whole("n"), whole("ranks"), whole("bytes_per_step"), real("ratio"),
               real("step_ms"), real("alone_step_ms"));
  else if (kind == "node")
    fmt::print(
        "\nOne node by itself, {} thread(s): {:.0f} ms a step of {} tokens, {} "
        "parameters.\n",
        whole("threads_each"), real("step_ms"), whole("tokens_per_step"),
        whole("parameters"));
  else if (kind == "loopback")
    fmt::print(
        "Two processes that sum up {} MB here send, receive and add at {:.1f} "
        "Gbit/s.\n{}",
        whole("bytes_per_step") >> 20, real("gbit_per_second"), kScaleTitle);
  else
    fmt::print("{:>8} {:>7} {:>14} {:>12.1f} {:>6.1f}% {:>10}\n", whole("ranks"),
               real("gbit_per_second"), whole("bytes_per_step"), real("exchange_ms"),
               100 * real("busy"), whole("tokens_for_nine_tenths"));
}

void run_dist_bench(const BenchDistFlags& flags) {
  keep_freed_memory();
  if (!dist::has_gloo()) throw std::runtime_error("this build has no Gloo");
  std::vector<Json> rows;
  const auto add = [&](const Json& row) {
    rows.push_back(row);
    if (!flags.json) print_line_of(row);
  };
  if (!flags.json) fmt::print("{}", kSequenceTitle);
  int64_t at_first = 0;
  for (const int64_t n : {int64_t{1} << 10, int64_t{1} << 14, int64_t{1} << 18}) {
    if (flags.quick && n > (1 << 14)) continue;
    show_progress(fmt::format("n = {}", n));
    const bench::SequenceTraffic traffic = bench::sequence_traffic(n, flags.ranks);
    show_progress("");
    if (at_first == 0) at_first = traffic.bytes_per_step;
    add(row_of_traffic(traffic, at_first));
  }
  add(row_of_overhead(flags));
  const Json node = row_of_node(flags), loopback = row_of_own_rate(flags);
  add(node), add(loopback);
  for (const Json& row : rows_of_scale(node, loopback)) add(row);
  if (flags.json) fmt::print("{}\n", Json(rows).dump(1));
}

void add_dist_bench(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "dist", "What several processes send each other, and what they cost");
  const auto flags = std::make_shared<BenchDistFlags>();
  verb->add_flag("--json", flags->json,
                 "Print a JSON array of rows instead of a table");
  verb->add_flag("--quick", flags->quick, "Measure a small model, and short sequences");
  verb->add_option("--ranks", flags->ranks, "Processes that train together")
      ->check(CLI::IsMember({2, 4, 8}))
      ->capture_default_str();
  verb->callback([flags] { run_dist_bench(*flags); });
}

const RegisterVerb dist_bench_registered({.name = "bench dist",
                                          .place = 8,
                                          .add = add_dist_bench});

}  // namespace
}  // namespace lagwise::cli
