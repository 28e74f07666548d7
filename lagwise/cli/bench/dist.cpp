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
  int64_t dim, length, steps;
  std::string recipe(int ranks, int64_t threads) const {
    return fmt::format(
        "[model]\nlayers = 4\ndim = {}\nheads = 4\n[data]\ntask = \"markov\"\nlength = "
        "{}\n[train]\nsteps = {}\nbatch = 8\nleaves = {}\nthreads = {}\nlog_every = "
        "1\neval_examples = 1\neval_every = 0\ncheckpoint_every = 100000\n",
        dim, length, steps, std::max(ranks, 2), threads);
  }
};

/// The mean seconds of a step in a metrics.jsonl, the first five left out.
double seconds_a_step(const fs::path& run) {
  std::ifstream in(run / "metrics.jsonl");
  std::vector<double> seconds;
  for (std::string line; std::getline(in, line);) {
    const Json json = Json::parse(line);
    if (json.contains("lr")) seconds.push_back(json["seconds"].get<double>());
  }
  constexpr size_t kFirst = 5;
  if (seconds.size() <= kFirst + 1)
    throw std::runtime_error("the run in " + run.string() + " did not train");
  return (seconds.back() - seconds[kFirst]) /
         static_cast<double>(seconds.size() - kFirst - 1);
}

struct Trained {
  double seconds = 0;  // of a step
  int64_t bytes = 0;   // that rank 0 sent in a step
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
  Trained trained{seconds_a_step(run)};
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
  const TrainedModel model =
      flags.quick ? TrainedModel{64, 128, 12} : TrainedModel{256, 512, 26};
  const int64_t all = std::max(usable_cores(), flags.ranks), each = all / flags.ranks;
  std::vector<double> ratios, alone, together;
  int64_t bytes = 0;
  for (int round = 0; round < (flags.quick ? 1 : kRounds); ++round) {
    show_progress(fmt::format("round {} of {}", round + 1, kRounds));
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

void print_line_of(const Json& row) {
  if (row["case"] == "sequence")
    fmt::print("{:<9} {:>8} {:>6} {:>14} {:>7.2f}\n", "sequence",
               row["n"].get<int64_t>(), row["ranks"].get<int>(),
               row["bytes_per_step"].get<int64_t>(), row["ratio"].get<double>());
  else
    fmt::print(
        "{:<9} {:>8} {:>6} {:>14} {:>7.2f}   {:.1f} ms a step, alone {:.1f} ms\n",
        "data", row["n"].get<int64_t>(), row["ranks"].get<int>(),
        row["bytes_per_step"].get<int64_t>(), row["ratio"].get<double>(),
        row["step_ms"].get<double>(), row["alone_step_ms"].get<double>());
}

void run_dist_bench(const BenchDistFlags& flags) {
  keep_freed_memory();
  if (!dist::has_gloo()) throw std::runtime_error("this build has no Gloo");
  std::vector<Json> rows;
  const auto add = [&](const Json& row) {
    rows.push_back(row);
    if (!flags.json) print_line_of(row);
  };
  if (!flags.json)
    fmt::print(
        "bytes that a rank sends in a step: of a layer that shares a sequence (ratio: "
        "to "
        "the first\nlength), and of a whole model that shares a batch (ratio: its time "
        "to "
        "that of one process\nwith as many threads)\n\n{:<9} {:>8} {:>6} {:>14} "
        "{:>7}\n",
        "", "n", "ranks", "bytes a step", "ratio");
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
