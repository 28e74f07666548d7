#include "bench/exact_cases.h"

#include <utility>

#include "bench/crossover.h"
#include "bench/exact_calls.h"
#include "bench/timing.h"

namespace lagwise::bench {
namespace {

const char* word(Pass pass) {
  return pass == Pass::forward ? "forward" : pass == Pass::both ? "both" : "backward";
}

/// Products of a pass: forward, backward.
double products(Pass pass, double forward, double backward) {
  if (pass == Pass::forward) return forward;
  return pass == Pass::both ? forward + backward : backward;
}

class ExactBench {
 public:
  explicit ExactBench(const ExactPlan& plan)
      : plan_(plan),
        comparer_(plan.quick, {.progress = plan.progress,
                               .on_row = plan.on_row,
                               .time = time_apart,
                               .patience = {.least = 3, .most = 9, .budget_ms = 300}}) {
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
    return comparer_.rows();
  }

 private:
  int64_t length(int64_t n) const { return plan_.quick ? n / 4 : n; }

  void alibi_cases() {
    const ExactInputs in = exact_inputs(length(2048), kHeads, kWidth);
    for (const Pass pass : {Pass::forward, Pass::both, Pass::backward})
      measure({.name = "full + ALiBi",
               .direction = word(pass),
               .ours = our_alibi(in, false, pass),
               .baselines = {{"torch", naive_alibi(in, pass), plan_.threads}}},
              in.q.size(2), products(pass, 2, 5));
  }

  void huang_cases() {
    const ExactInputs in = exact_inputs(length(4096), kHeads, kWidth);
    for (const Pass pass : {Pass::forward, Pass::both})
      measure({.name = "causal Huang",
               .direction = word(pass),
               .ours = our_huang(in, pass),
               .baselines = {{"skew", naive_huang(in, pass), plan_.threads}}},
              in.q.size(2), products(pass, 1.5, 4));
  }

  void causal_cases() {
    const ExactInputs in = exact_inputs(length(4096), kHeads, kWidth);
    for (const Pass pass : {Pass::forward, Pass::backward})
      measure({.name = "causal + ALiBi (cost: over full)",
               .direction = word(pass),
               .ours = our_alibi(in, true, pass),
               .baselines = {ourselves("full", our_alibi(in, false, pass))},
               .is_cost = true},
              in.q.size(2), products(pass, 1, 2.5));
  }

  void thread_cases() {
    if (plan_.threads < 2) return;
    const ExactInputs in = exact_inputs(length(2048), kHeads, kWidth);
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const Call ours = our_alibi(in, false, pass);
      Baseline alone = ourselves("one_thread", ours);
      alone.threads = 1;
      measure({.name = "full + ALiBi, more threads against one",
               .direction = word(pass),
               .ours = ours,
               .baselines = {alone}},
              in.q.size(2), products(pass, 2, 5));
    }
  }

  /// Memory is what these are for; a quadratic cost keeps its time honest.
  void memory_cases() {
    const ExactInputs in = exact_inputs(length(8192), kHeads, kWidth);
    const ExactInputs half = exact_inputs(length(4096), kHeads, kWidth);
    for (const Pass pass : {Pass::forward, Pass::both}) {
      Baseline shorter = ourselves("half_length", our_alibi(half, false, pass));
      shorter.times = 4;
      measure({.name = "full + ALiBi, long (cost: over half the length, times 4)",
               .direction = word(pass),
               .ours = our_alibi(in, false, pass),
               .baselines = {shorter},
               .is_cost = true},
              in.q.size(2), products(pass, 2, 5));
    }
  }

  void step_cases() {
    const Decoding linear = decoding_at(100, {1, kHeads, kWidth, kWidth});
    for (const int64_t n : {length(4096), length(65536)})
      for (const auto storage : {at::kFloat, at::kBFloat16}) {
        const ExactDecoding at = exact_decoding(n, kHeads, kWidth, storage);
        const std::string kind = storage == at::kFloat ? "f32" : "bf16";
        const double product = 2.0 / double(n);
        Comparison c{.name = "decode step, " + kind + " cache (cost: over reading it)",
                     .direction = "step",
                     .ours = our_exact_step(at),
                     .baselines = {ourselves("read", read_cache(at))},
                     .is_cost = true};
        measure(c, n, product);
        if (storage != at::kFloat) continue;
        c.name = "decode step, f32 cache (cost: over a linear one)";
        c.baselines = {{"linear_step", our_step(linear), 1}};
        measure(c, n, product);
        c.name = "decode step, f32 cache", c.is_cost = false;
        c.baselines = {{"torch", naive_step(at), plan_.threads}};
        measure(c, n, product);
      }
  }

  /// Where the Toeplitz form of linear attention beats exact attention.
  void toeplitz_cases() {
    Curve exact, linear;
    for (int64_t n = length(2048); n <= length(65536); n *= 2) {
      const ExactInputs in = exact_inputs(n, kHeads, kWidth);
      measure({.name = "full linear + ALiBi by FFT",
               .direction = "forward",
               .ours = our_toeplitz(in, Pass::forward),
               .baselines = {ourselves("exact", our_alibi(in, false, Pass::forward))}},
              n, 2);
      const BenchRow& row = comparer_.rows().back();
      linear.points.push_back({.n = n, .ms = row.ours_ms, .bytes = row.extra_bytes});
      exact.points.push_back({.n = n, .ms = row.baseline_ms, .bytes = 0});
      if (row.ratio >= 1) break;
    }
    plan_.note("full linear attention with a bias by lag (FFT) overtakes exact: " +
               describe(find_crossing(exact, linear)));
  }

  /// A baseline that is ours as well.
  Baseline ourselves(const char* name, const Call& call) const {
    return {.name = name, .call = call, .threads = plan_.threads, .weigh = false};
  }

  /// `products`: of 2 N N D flops a head.
  void measure(Comparison c, int64_t n, double products) {
    c.shape = {n, kHeads, kWidth, kWidth};
    c.threads = plan_.threads;
    c.gflop = 1e-9 * products * 2 * double(n) * double(n) * kWidth * kHeads;
    comparer_.measure(c);
  }

  ExactPlan plan_;
  Comparer comparer_;
};

}  // namespace

std::vector<BenchRow> run_exact_cases(const ExactPlan& plan) {
  set_blas_threads(plan.threads);
  return ExactBench(plan).run();
}

}  // namespace lagwise::bench
