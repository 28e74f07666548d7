#include "bench/favor_cases.h"

#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/fma_peak.h"
#include "bench/linear_calls.h"
#include "bench/memory.h"
#include "bench/timing.h"
#include "lagwise/attention/linear.h"
#include "lagwise/ops/favor.h"

namespace lagwise::bench {
namespace {

/// As a layer runs it (nn/linear_mixer.cpp).
at::Tensor favor_attention(const Inputs& in, const at::Tensor& directions) {
  static const LinearAttention attention("linear:map=favor", {kHeads, kWidth});
  using Side = LinearAttention::Side;
  return attention.attend({.q = attention.features(in.q, Side::query, {}, directions),
                           .k = attention.features(in.k, Side::key, {}, directions),
                           .v = in.v,
                           .mapped = true});
}

Call favor_forward(const Inputs& in, const at::Tensor& directions) {
  return [=] { return std::vector{favor_attention(in, directions)}; };
}

Call features_alone(const Inputs& in, const at::Tensor& directions) {
  return [=] {
    return std::vector{ops::favor_features(in.q, directions).x,
                       ops::favor_features(in.k, directions).x};
  };
}

/// Forward and backward, from scratch each time.
Call training(const Inputs& in,
              const std::function<at::Tensor(const Inputs&)>& attention) {
  const c10::AutoGradMode with_graph(true);
  const auto leaf = [](const at::Tensor& x) {
    return x.detach().set_requires_grad(true);
  };
  const Inputs leaves = {leaf(in.q), leaf(in.k), leaf(in.v)};
  const at::Tensor grad = at::randn(in.v.sizes(), at::kFloat);
  return [=] {
    const c10::AutoGradMode graph(true);
    return torch::autograd::grad({attention(leaves)}, {leaves.q, leaves.k, leaves.v},
                                 {grad});
  };
}

struct FavorCase {
  std::string direction;
  Call ours, elu1, features;
};

class FavorBench {
 public:
  explicit FavorBench(const LinearPlan& plan) : plan_(plan) {
    if (plan.quick) patience_ = {.least = 5, .most = 5, .repetition_ms = 1};
  }

  std::vector<BenchRow> run() {
    const c10::NoGradGuard no_graph;
    for (const int threads : plan_.threads)
      for (const int64_t f : {128, 256}) {
        const int64_t n = plan_.quick ? 1024 : 4096;
        const Inputs in = random_inputs({n, kHeads, kWidth, kWidth});
        const Inputs wide = random_inputs({n, kHeads, f, kWidth});
        const at::Tensor w = at::randn({f, kWidth}, at::kFloat);
        const ops::LinearOptions elu1 = causal("elu1", "same");
        measure({"forward", favor_forward(in, w), our_forward(wide, elu1),
                 features_alone(in, w)},
                n, f, threads);
        measure({"training",
                 training(in, [w](const Inputs& x) { return favor_attention(x, w); }),
                 training(wide,
                          [elu1](const Inputs& x) {
                            return ops::linear_attention(x.q, x.k, x.v, elu1);
                          }),
                 features_alone(in, w)},
                n, f, threads);
      }
    return rows_;
  }

 private:
  void measure(const FavorCase& c, int64_t n, int64_t f, int threads) {
    BenchRow row;
    row.name = "favor, " + c.direction + ", F=" + std::to_string(f) +
               " (cost: ours / baseline)";
    plan_.progress(row.name);
    row.direction = c.direction;
    row.n = n, row.heads = kHeads, row.d = f, row.e = kWidth, row.threads = threads;
    const double roof = fma_peak_gflops(threads);
    const std::vector<Times> times = time_in_turn(
        {{c.ours, threads}, {c.elu1, threads}, {c.features, threads}}, patience_);
    set_threads(threads);
    row.ours_ms = times[0].median_ms;
    row.extra_bytes = extra_bytes(c.ours);
    row.peak_gflops = roof;
    // Attention as in `bench linear`, and two projections; three times that to train.
    const double passes = c.direction == "forward" ? 1 : 3;
    const double flops = static_cast<double>(4 * f * kWidth * 2 * kHeads * n);
    row.gflops = 1e-6 * passes * flops / row.ours_ms;
    row.fraction = row.gflops / row.peak_gflops;
    add(row, "elu1", times[1]);
    add(row, "features", times[2]);
  }

  void add(BenchRow row, const char* baseline, const Times& times) {
    row.baseline = baseline;
    row.baseline_ms = times.median_ms;
    row.ratio = row.ours_ms / row.baseline_ms;
    rows_.push_back(row);
  }

  LinearPlan plan_;
  Patience patience_;
  std::vector<BenchRow> rows_;
};

}  // namespace

std::vector<BenchRow> run_favor_cases(const LinearPlan& plan) {
  return FavorBench(plan).run();
}

}  // namespace lagwise::bench
