#include "bench/gated_cases.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/linear_calls.h"
#include "bench/timing.h"
#include "bench/torch_gated.h"

namespace lagwise::bench {
namespace {

using at::Tensor;
using Attend = Tensor (*)(const Tensor&, const Tensor&, const Tensor&,
                          const ops::LinearOptions&);

/// Some rows and what they forget and write by. Keys have length 1, as the delta rule
/// wants them.
struct Rows {
  Tensor q, k, v, grad_out;
  ops::LinearOptions options;
};

/// Which of the two the rows have.
struct Kind {
  const char* name;
  bool gates, writes;
};
constexpr Kind kKinds[] = {
    {"gated", true, false}, {"delta", false, true}, {"gated_delta", true, true}};
constexpr Kind kFixed = {"fixed_decay", false, false};

Rows random_rows(const Kind& kind, const Shape& shape) {
  const auto normal = [&](int64_t width) {
    return at::randn({1, shape.heads, shape.n, width}, at::kFloat);
  };
  Rows rows{normal(shape.d), normal(shape.d), normal(shape.e), normal(shape.e),
            bare_product()};
  rows.k = rows.k / rows.k.norm(2, -1, true);
  if (kind.gates) rows.options.log_decay = at::rand({1, shape.heads, shape.n}) * -0.1;
  if (kind.writes) rows.options.write_strength = at::rand({1, shape.heads, shape.n});
  if (!kind.gates && !kind.writes)
    rows.options.decay = at::full({shape.heads}, -0.05, at::kFloat);
  return rows;
}

Call forward_of(Attend attend, const Rows& x) {
  return [=] { return std::vector{attend(x.q, x.k, x.v, x.options)}; };
}

/// The gradient of everything but a fixed decay; the graph is built once and kept.
Call backward_of(Attend attend, Rows x) {
  const c10::AutoGradMode with_graph(true);
  std::vector<Tensor> leaves;
  for (Tensor* one :
       {&x.q, &x.k, &x.v, &x.options.log_decay, &x.options.write_strength}) {
    if (!one->defined()) continue;
    *one = one->detach().set_requires_grad(true);
    leaves.push_back(*one);
  }
  const Tensor out = attend(x.q, x.k, x.v, x.options);
  return [=] {
    return torch::autograd::grad({out}, leaves, {x.grad_out}, /*retain_graph=*/true);
  };
}

using Step = Tensor (*)(const Tensor&, const Tensor&, const Tensor&,
                        const ops::LinearState&, const ops::LinearOptions&);

Call step_of(Step step, const Rows& x) {
  const auto token = [](const Tensor& t) {
    return t.defined() ? t.select(2, 0).contiguous() : t;
  };
  ops::LinearOptions options = x.options;
  options.log_decay = token(options.log_decay);
  options.write_strength = token(options.write_strength);
  const ops::LinearState state{
      at::zeros({1, x.q.size(1), x.q.size(3), x.v.size(3)}, at::kFloat),
      at::zeros({1, x.q.size(1), 0}, at::kFloat)};
  return [=, q = token(x.q), k = token(x.k), v = token(x.v)] {
    return std::vector{step(q, k, v, state, options)};
  };
}

void measure_row(Comparer& comparer, const Kind& kind, const char* direction,
                 const Shape& shape, const Call& ours, std::vector<Baseline> rivals,
                 const Call& fixed) {
  Comparison c;
  c.name = kind.name, c.direction = direction, c.shape = shape;
  c.ours = ours, c.baselines = std::move(rivals);
  c.gflop = useful_gflop(c);
  comparer.measure(c);
  c.baselines = {{"fixed_decay", fixed}};
  c.is_cost = true;
  comparer.measure(c);
}

}  // namespace

void measure_gated_cases(const LinearPlan& plan, Comparer& comparer) {
  // A loop keeps a state per token for its backward pass: it runs on fewer.
  constexpr int64_t kLoop = 256;
  const Shape shape = {plan.quick ? 1024 : 4096, 8, 64, 64};
  const Shape few = {kLoop, shape.heads, shape.d, shape.e};
  const Shape token = {1, shape.heads, shape.d, shape.e};
  const double times = double(shape.n) / double(kLoop);
  const Rows fixed = random_rows(kFixed, shape);
  set_threads(1);
  for (const Kind& kind : kKinds) {
    const Rows x = random_rows(kind, shape), y = random_rows(kind, few);
    measure_row(comparer, kind, "forward", shape, forward_of(ops::linear_attention, x),
                {{"torch_chunked", forward_of(torch_chunked, x)},
                 {"loop", forward_of(torch_loop, y), 1, times}},
                forward_of(ops::linear_attention, fixed));
    measure_row(comparer, kind, "backward", shape,
                backward_of(ops::linear_attention, x),
                {{"torch_chunked", backward_of(torch_chunked, x)},
                 {"loop", backward_of(torch_loop, y), 1, times}},
                backward_of(ops::linear_attention, fixed));
    measure_row(comparer, kind, "step", token, step_of(ops::linear_attention_step, x),
                {{"loop", step_of(torch_gated_step, x)}},
                step_of(ops::linear_attention_step, fixed));
  }
}

}  // namespace lagwise::bench
