#include "bench/crossover.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "bench/comparison.h"
#include "bench/memory.h"
#include "bench/naive_exact.h"
#include "bench/timing.h"
#include "lagwise/ops/linear_attention.h"

namespace lagwise::bench {
namespace {

/// A call at one length, and what it keeps in memory if that is not to be
/// measured but known.
struct Contender {
  Call call;
  int64_t kept_bytes = -1;
};

struct HeadInputs {
  at::Tensor q, k, v;  ///< [1, H, N, D]
};

HeadInputs head_inputs(int64_t n, int64_t d, bool leaves) {
  const auto part = [&] {
    return at::rand({1, kHeads, n, d}, at::kFloat).set_requires_grad(leaves);
  };
  return {part(), part(), part()};
}

/// "none" goes without a denominator, "elu1" with the usual one.
ops::LinearOptions linear_options(const std::string& feature_map) {
  ops::LinearOptions options;
  options.causal = true;
  options.feature_map = feature_map;
  options.denominator = feature_map == "none" ? "none" : "same";
  return options;
}

at::Tensor attend(const HeadInputs& in, const std::string& rival) {
  if (rival == "exact") return naive_exact(in.q, in.k, in.v);
  return ops::linear_attention(in.q, in.k, in.v, linear_options(rival));
}

Contender forward(const std::string& rival, int64_t n, int64_t d) {
  const HeadInputs in = head_inputs(n, d, false);
  return {[=] {
    const c10::NoGradGuard no_graph;
    return std::vector{attend(in, rival)};
  }};
}

/// One step of training as attention sees it: out, then dq, dk and dv.
Contender forward_and_backward(const std::string& rival, int64_t n, int64_t d) {
  const HeadInputs in = head_inputs(n, d, true);
  const at::Tensor grad = at::rand({1, kHeads, n, d}, at::kFloat);
  return {[=] {
    const c10::AutoGradMode with_graph(true);
    const at::Tensor out = attend(in, rival);
    auto results = torch::autograd::grad({out}, {in.q, in.k, in.v}, {grad});
    results.push_back(out.detach());
    return results;
  }};
}

Contender exact_step(int64_t n, int64_t d) {
  const HeadInputs past = head_inputs(n, d, false);
  const KeyValueCache cache = {past.k, past.v};
  const at::Tensor x = at::rand({1, kHeads, d}, at::kFloat);
  const int64_t bytes = 2 * n * d * kHeads * int64_t(sizeof(float));
  return {[=] {
            const c10::NoGradGuard no_graph;
            return std::vector{naive_exact_step(x, x, x, cache, n - 1)};
          },
          bytes};
}

/// The state is the same size after any past, so an empty one serves.
Contender linear_step(const std::string& rival, int64_t d) {
  const ops::LinearOptions options = linear_options(rival);
  const int64_t z_width = options.denominator == "none" ? 0 : d;
  const ops::LinearState state = {at::zeros({1, kHeads, d, d}, at::kFloat),
                                  at::zeros({1, kHeads, z_width}, at::kFloat)};
  const at::Tensor x = at::rand({1, kHeads, d}, at::kFloat);
  const int64_t bytes = int64_t(state.s.nbytes() + state.z.nbytes());
  return {[=] {
            const c10::NoGradGuard no_graph;
            return std::vector{ops::linear_attention_step(x, x, x, state, options)};
          },
          bytes};
}

Contender contender(const std::string& direction, const std::string& rival, int64_t n,
                    int64_t d) {
  if (direction == "forward") return forward(rival, n, d);
  if (direction == "forward+backward") return forward_and_backward(rival, n, d);
  return rival == "exact" ? exact_step(n, d) : linear_step(rival, d);
}

/// Whether exact attention, quadratic in N (a step: linear), would take too long
/// at length n, judged by its last point.
bool too_long(const Curve& exact, const std::string& direction, int64_t n,
              double limit_ms) {
  if (exact.points.empty()) return false;
  const Point& last = exact.points.back();
  const double growth = double(n) / double(last.n);
  return last.ms * (direction == "step" ? growth : growth * growth) > limit_ms;
}

/// Measures the rivals named by `rivals` at one length, adding to their curves.
void measure_length(const CrossoverPlan& plan, const Panel& panel, int64_t n,
                    const std::vector<std::pair<std::string, Curve*>>& rivals) {
  std::vector<Contender> contenders;
  std::vector<Side> sides;
  for (const auto& [rival, curve] : rivals) {
    contenders.push_back(contender(panel.direction, rival, n, panel.d));
    sides.push_back({contenders.back().call, plan.threads});
  }
  const Patience patience = {
      .least = 3, .most = 7, .repetition_ms = 1, .budget_ms = plan.side_budget_ms};
  const std::vector<Times> times = time_in_turn(sides, patience);
  for (size_t i = 0; i < rivals.size(); ++i) {
    const Contender& c = contenders[i];
    const int64_t bytes = c.kept_bytes >= 0 ? c.kept_bytes : extra_bytes(c.call);
    rivals[i].second->points.push_back({n, times[i].median_ms, bytes});
  }
}

Panel measure_panel(const CrossoverPlan& plan, const std::string& direction,
                    int64_t d) {
  Panel panel = {direction, d, {"exact", {}, ""}, {}};
  panel.linear = {{"linear, none", {}, ""}, {"linear, elu1", {}, ""}};
  for (const int64_t n : plan.lengths) {
    plan.progress(direction + ", D = " + std::to_string(d) +
                  ", N = " + std::to_string(n));
    std::vector<std::pair<std::string, Curve*>> rivals = {{"none", &panel.linear[0]},
                                                          {"elu1", &panel.linear[1]}};
    if (panel.exact.stopped.empty() &&
        too_long(panel.exact, direction, n, plan.longest_call_ms)) {
      panel.exact.stopped = "stopped before N = " + std::to_string(n) +
                            ": a call would take over " +
                            std::to_string(int64_t(plan.longest_call_ms)) + " ms";
    }
    if (panel.exact.stopped.empty()) rivals.push_back({"exact", &panel.exact});
    measure_length(plan, panel, n, rivals);
  }
  return panel;
}

}  // namespace

CrossoverPlan quick_crossover() {
  CrossoverPlan plan;
  plan.widths = {64, 128};
  plan.lengths = {32, 64, 128, 256, 512, 1024, 2048, 4096};
  plan.longest_call_ms = 400;
  plan.side_budget_ms = 60;
  return plan;
}

std::vector<Panel> run_crossover(const CrossoverPlan& plan) {
  set_blas_threads(plan.threads);
  std::vector<Panel> panels;
  for (const char* direction : {"forward", "forward+backward", "step"}) {
    for (const int64_t d : plan.widths) {
      panels.push_back(measure_panel(plan, direction, d));
    }
  }
  return panels;
}

}  // namespace lagwise::bench
