#include "bench/exact_cases.h"

#include <algorithm>
#include <map>
#include <utility>

#include "bench/exact_calls.h"
#include "bench/floors.h"
#include "bench/fma_peak.h"
#include "bench/memory.h"
#include "bench/timing.h"

namespace lagwise::bench {
namespace {

constexpr int64_t kHeads = 8, kD = 64;

struct ExactBaseline {
  std::string name;
  Call call;
  int threads = 1;
  double times = 1;
};

struct ExactCase {
  std::string name;
  std::string direction;
  int64_t n = 0;
  double products = 0;  ///< of 2 N N D flops a head
  Call ours;
  std::vector<ExactBaseline> baselines;
  bool is_cost = false;  ///< the ratio is ours / baseline
};

const char* word(Pass pass) {
  return pass == Pass::forward ? "forward" : pass == Pass::both ? "both" : "backward";
}

/// Products of a pass: forward, backward.
double products(Pass pass, double forward, double backward) {
  if (pass == Pass::forward) return forward;
  return pass == Pass::both ? forward + backward : backward;
}

/// Each side by itself, in three rounds, or in one where a call takes long. A torch
/// side needs OpenBLAS on all cores, whose threads spin for a while after a product and
/// would take a core from whoever is timed next: here the warm-up of each side bears
/// that, not its times.
std::vector<Times> time_in_rounds(const std::vector<Side>& sides,
                                  const Patience& patience) {
  constexpr double kLong = 600;  // ms
  std::vector<std::vector<Times>> rounds(sides.size());
  int count = 3;
  for (int round = 0; round < count; ++round)
    for (size_t i = 0; i < sides.size(); ++i) {
      rounds[i].push_back(time_in_turn({sides[i]}, patience)[0]);
      if (rounds[i].back().median_ms > kLong) count = 1;
    }
  std::vector<Times> times;
  for (std::vector<Times>& each : rounds) {
    std::sort(each.begin(), each.end(),
              [](const Times& a, const Times& b) { return a.median_ms < b.median_ms; });
    Times middle = each[each.size() / 2];
    for (const Times& t : each) middle.best_ms = std::min(middle.best_ms, t.best_ms);
    times.push_back(middle);
  }
  return times;
}

class ExactBench {
 public:
  explicit ExactBench(const ExactPlan& plan) : plan_(plan) {
    patience_ = {.least = 3, .most = 9, .repetition_ms = 2, .budget_ms = 500};
    if (plan.quick) patience_ = {.least = 3, .most = 3, .repetition_ms = 1};
  }

  std::vector<BenchRow> run() {
    using Cases = void (ExactBench::*)();
    const std::pair<const char*, Cases> groups[] = {
        {"alibi", &ExactBench::alibi_cases},
        {"huang", &ExactBench::huang_cases},
        {"causal", &ExactBench::causal_cases},
        {"threads", &ExactBench::thread_cases},
        {"memory", &ExactBench::memory_cases},
        {"step", &ExactBench::step_cases},
        {"toeplitz", &ExactBench::toeplitz_cases}};
    for (const auto& [name, cases] : groups)
      if (plan_.only.empty() || plan_.only == name) (this->*cases)();
    return rows_;
  }

 private:
  int64_t length(int64_t n) const { return plan_.quick ? n / 4 : n; }

  void alibi_cases() {
    const ExactInputs in = exact_inputs(length(2048), kHeads, kD);
    for (const Pass pass : {Pass::forward, Pass::both, Pass::backward})
      measure({.name = "full + ALiBi",
               .direction = word(pass),
               .n = in.q.size(2),
               .products = products(pass, 2, 5),
               .ours = our_alibi(in, false, pass),
               .baselines = {{"torch", naive_alibi(in, pass), plan_.threads}}});
  }

  void huang_cases() {
    const ExactInputs in = exact_inputs(length(4096), kHeads, kD);
    for (const Pass pass : {Pass::forward, Pass::both})
      measure({.name = "causal Huang",
               .direction = word(pass),
               .n = in.q.size(2),
               .products = products(pass, 1.5, 4),
               .ours = our_huang(in, pass),
               .baselines = {{"skew", naive_huang(in, pass), plan_.threads}}});
  }

  void causal_cases() {
    const ExactInputs in = exact_inputs(length(4096), kHeads, kD);
    for (const Pass pass : {Pass::forward, Pass::backward})
      measure({.name = "causal + ALiBi (cost: over full)",
               .direction = word(pass),
               .n = in.q.size(2),
               .products = products(pass, 1, 2.5),
               .ours = our_alibi(in, true, pass),
               .baselines = {{"full", our_alibi(in, false, pass), plan_.threads}},
               .is_cost = true});
  }

  void thread_cases() {
    if (plan_.threads < 2) return;
    const ExactInputs in = exact_inputs(length(2048), kHeads, kD);
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const Call ours = our_alibi(in, false, pass);
      measure({.name = "full + ALiBi, more threads against one",
               .direction = word(pass),
               .n = in.q.size(2),
               .products = products(pass, 2, 5),
               .ours = ours,
               .baselines = {{"one_thread", ours, 1}}});
    }
  }

  /// Memory is what these are for; a quadratic cost keeps its time honest.
  void memory_cases() {
    const ExactInputs in = exact_inputs(length(8192), kHeads, kD);
    const ExactInputs half = exact_inputs(length(4096), kHeads, kD);
    for (const Pass pass : {Pass::forward, Pass::both})
      measure({.name = "full + ALiBi, long (cost: over half the length, times 4)",
               .direction = word(pass),
               .n = in.q.size(2),
               .products = products(pass, 2, 5),
               .ours = our_alibi(in, false, pass),
               .baselines = {{"half_length", our_alibi(half, false, pass),
                              plan_.threads, 4}},
               .is_cost = true});
  }

  void step_cases() {
    const Decoding linear = decoding_at(100, {1, kHeads, kD, kD});
    for (const int64_t n : {length(4096), length(65536)})
      for (const auto storage : {at::kFloat, at::kBFloat16}) {
        const ExactDecoding at = exact_decoding(n, kHeads, kD, storage);
        const std::string kind = storage == at::kFloat ? "f32" : "bf16";
        ExactCase c{.name = "decode step, " + kind + " cache (cost: over reading it)",
                    .direction = "step",
                    .n = n,
                    .products = 2.0 / double(n),
                    .ours = our_exact_step(at),
                    .baselines = {{"read", read_cache(at), plan_.threads}},
                    .is_cost = true};
        measure(c);
        if (storage != at::kFloat) continue;
        c.name = "decode step, f32 cache (cost: over a linear one)";
        c.baselines = {{"linear_step", our_step(linear), 1}};
        measure(c);
        c.name = "decode step, f32 cache", c.is_cost = false;
        c.baselines = {{"torch", naive_step(at), plan_.threads}};
        measure(c);
      }
  }

  /// Where the Toeplitz form of linear attention beats exact attention.
  void toeplitz_cases() {
    for (const int64_t n : {length(1024), length(4096), length(16384)}) {
      const ExactInputs in = exact_inputs(n, kHeads, kD);
      measure({.name = "full linear + ALiBi by FFT",
               .direction = "forward",
               .n = n,
               .products = 2,
               .ours = our_toeplitz(in, Pass::forward),
               .baselines = {
                   {"exact", our_alibi(in, false, Pass::forward), plan_.threads}}});
    }
  }

  /// The roof only rises: a disturbed measurement must not flatter us.
  double peak(int threads) {
    double& best = peaks_[threads];
    return best = std::max(best, fma_peak_gflops(threads));
  }

  void measure(const ExactCase& c) {
    plan_.progress(c.name + ", " + c.direction);
    std::vector<Side> sides = {{c.ours, plan_.threads}};
    for (const ExactBaseline& b : c.baselines) sides.push_back({b.call, b.threads});
    const double roof = peak(plan_.threads);
    const std::vector<Times> times = time_in_rounds(sides, patience_);
    set_threads(plan_.threads);
    BenchRow row;
    row.name = c.name, row.direction = c.direction;
    row.n = c.n, row.heads = kHeads, row.d = row.e = kD;
    row.threads = plan_.threads;
    row.ours_ms = times[0].median_ms;
    row.peak_gflops = std::max(roof, peak(plan_.threads));
    const double flops = c.products * 2 * double(c.n) * double(c.n) * kD * kHeads;
    row.gflops = 1e-9 * flops / (row.ours_ms * 1e-3);
    row.fraction = row.gflops / row.peak_gflops;
    row.extra_bytes = extra_bytes(c.ours);
    for (size_t i = 0; i < c.baselines.size(); ++i)
      compare(row, c, c.baselines[i], times[i + 1]);
  }

  /// Floors are best times, so the baseline's best is held against them.
  void compare(BenchRow row, const ExactCase& c, const ExactBaseline& baseline,
               const Times& times) {
    row.baseline = baseline.name;
    row.baseline_ms = times.median_ms * baseline.times;
    row.ratio =
        c.is_cost ? row.ours_ms / row.baseline_ms : row.baseline_ms / row.ours_ms;
    const auto floor =
        floor_ms({baseline.name, c.direction, c.n, kHeads, kD, kD, plan_.threads},
                 row.peak_gflops / plan_.threads);
    row.weak_baseline = floor && times.best_ms > *floor;
    rows_.push_back(row);
  }

  ExactPlan plan_;
  Patience patience_;
  std::map<int, double> peaks_;
  std::vector<BenchRow> rows_;
};

}  // namespace

std::vector<BenchRow> run_exact_cases(const ExactPlan& plan) {
  set_blas_threads(plan.threads);
  return ExactBench(plan).run();
}

}  // namespace lagwise::bench
