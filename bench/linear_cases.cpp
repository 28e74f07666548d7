#include "bench/linear_cases.h"

#include <ATen/ops/rand.h>
#include <c10/core/GradMode.h>

#include "bench/comparison.h"
#include "bench/convolution_cases.h"
#include "bench/gated_cases.h"
#include "bench/linear_calls.h"
#include "bench/timing.h"

namespace lagwise::bench {

double useful_gflop(const Comparison& c) {
  const double per_state_entry = c.direction == "backward" ? 10 : 4;
  const double tokens = c.direction == "step" ? 1 : double(c.shape.n);
  return 1e-9 * per_state_entry * double(c.shape.d * c.shape.e * c.shape.heads) *
         tokens;
}

namespace {

class LinearBench {
 public:
  explicit LinearBench(const LinearPlan& plan)
      : plan_(plan), comparer_(plan.quick, plan.progress) {}

  std::vector<BenchRow> run() {
    const c10::NoGradGuard no_graph;
    for (const int threads : plan_.threads) {
      forward_case(threads);
      wide_forward_cases(threads);
      backward_case(threads);
      fused_case(threads);
    }
    more_threads_cases();
    long_sequence_cases();
    step_cases();
    measure_gated_cases(plan_, comparer_);
    measure_convolution_cases(plan_, comparer_);
    return comparer_.rows();
  }

 private:
  int64_t length() const { return plan_.quick ? 1024 : 4096; }
  int64_t great_length() const { return plan_.quick ? 16384 : 65536; }

  void forward_case(int threads) {
    const Shape shape = {length(), 8, 64, 64};
    const Inputs in = random_inputs(shape);
    measure({.name = "forward",
             .direction = "forward",
             .shape = shape,
             .threads = threads,
             .ours = our_forward(in, bare_product()),
             .baselines = {
                 {"recurrence", recurrence_forward(in, Passes::two), threads},
                 {"recurrence_fused", recurrence_forward(in, Passes::one), threads},
                 {"torch", torch_forward(in, bare_product()), threads}}});
  }

  /// The peer whose floor we know was measured at D = 256, E = 64.
  void wide_forward_cases(int threads) {
    for (const int64_t e : {64, 256}) {
      if (plan_.quick && e == 256) continue;
      const Shape shape = {length(), 8, 256, e};
      const Inputs in = random_inputs(shape);
      measure({.name = e == 64 ? "forward, D=256" : "forward, D=E=256",
               .direction = "forward",
               .shape = shape,
               .threads = threads,
               .ours = our_forward(in, bare_product()),
               .baselines = {
                   {"recurrence", recurrence_forward(in, Passes::two), threads},
                   {"recurrence_fused", recurrence_forward(in, Passes::one), threads},
                   {"torch", torch_forward(in, bare_product()), threads}}});
    }
  }

  void backward_case(int threads) {
    const Shape shape = {length(), 8, 64, 64};
    const Inputs in = random_inputs(shape);
    const at::Tensor grad_out = at::rand(in.v.sizes(), at::kFloat);
    set_threads(threads);
    measure({.name = "backward, normalised, dq dk dv",
             .direction = "backward",
             .shape = shape,
             .threads = threads,
             .ours = our_gradient(in, grad_out),
             .baselines = {{"recurrence",
                            recurrence_gradient(in, grad_out, Passes::two), threads},
                           {"recurrence_fused",
                            recurrence_gradient(in, grad_out, Passes::one), threads},
                           {"torch", torch_gradient(in, grad_out), threads}}});
  }

  void fused_case(int threads) {
    const Shape shape = {length(), 8, 64, 64};
    const Inputs in = random_inputs(shape);
    measure({.name = "forward, elu1 + normaliser (cost: ours / bare product)",
             .direction = "forward",
             .shape = shape,
             .threads = threads,
             .ours = our_forward(in, causal("elu1", "same")),
             .baselines = {{"bare", our_forward(in, bare_product()), threads}},
             .is_cost = true});
  }

  void more_threads_cases() {
    const int threads = plan_.most_threads;
    if (threads < 2) return;
    const Shape shape = {length(), 8, 64, 64};
    const Inputs in = random_inputs(shape);
    const Call ours = our_forward(in, bare_product());
    measure({.name = "forward, more threads against one",
             .direction = "forward",
             .shape = shape,
             .threads = threads,
             .ours = ours,
             .baselines = {{"one_thread", ours, 1}}});
    const Shape long_head = {great_length(), 1, 64, 64};
    const Inputs rows = random_inputs(long_head);
    measure({.name = "forward, one long head, more threads against the kernel on one",
             .direction = "forward",
             .shape = long_head,
             .threads = threads,
             .ours = our_forward(rows, bare_product()),
             .baselines = {{"one_thread", kernel_forward(rows), 1}}});
  }

  /// Linear means that a token costs the same in any company.
  void long_sequence_cases() {
    const Shape shape = {great_length(), 8, 64, 64};
    const Inputs in = random_inputs(shape);
    const Inputs few = random_inputs({1024, 8, 64, 64});
    const double times = double(shape.n) / 1024;
    measure({.name = "forward, time per token (cost: N / N=1024, same tokens in all)",
             .direction = "forward",
             .shape = shape,
             .ours = our_forward(in, bare_product()),
             .baselines = {{"n1024", our_forward(few, bare_product()), 1, times}},
             .is_cost = true});
    const at::Tensor grad = at::rand(in.v.sizes(), at::kFloat);
    const at::Tensor few_grad = at::rand(few.v.sizes(), at::kFloat);
    set_threads(1);
    measure({.name = "backward, time per token (cost: N / N=1024, same tokens in all)",
             .direction = "backward",
             .shape = shape,
             .ours = our_gradient(in, grad),
             .baselines = {{"n1024", our_gradient(few, few_grad), 1, times}},
             .is_cost = true});
  }

  void step_cases() {
    const Shape shape = {1, 8, 64, 64};
    const Decoding early = decoding_at(100, shape), eager = decoding_at(100, shape);
    measure({.name = "decode step at position 100",
             .direction = "step",
             .shape = shape,
             .ours = our_step(early),
             .baselines = {{"torch", eager_step(eager)}}});
    const int64_t late = plan_.quick ? 100'000 : 1'000'000;
    measure({.name = "decode step at position " + std::to_string(late) +
                     " (cost: over position 100)",
             .direction = "step",
             .shape = shape,
             .ours = our_step(decoding_at(late, shape)),
             .baselines = {{"position_100", our_step(early)}},
             .is_cost = true});
  }

  void measure(Comparison c) {
    c.gflop = useful_gflop(c);
    comparer_.measure(c);
  }

  LinearPlan plan_;
  Comparer comparer_;
};

}  // namespace

std::vector<BenchRow> run_linear_cases(const LinearPlan& plan) {
  set_blas_threads(1);  // for products this small, faster than with two
  return LinearBench(plan).run();
}

}  // namespace lagwise::bench
