#include "bench/convolution_cases.h"

#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/timing.h"
#include "bench/torch_convolution.h"
#include "lagwise/ops/short_convolution.h"

namespace lagwise::bench {
namespace {

using at::Tensor;

constexpr int64_t kTokens = 4;

using Convolve = Tensor (*)(const Tensor& x, const Tensor& taps);

Tensor ours(const Tensor& x, const Tensor& taps) {
  return ops::short_convolution(x, taps);
}

struct Rows {
  Tensor x, taps, grad_out;
};

Call forward_of(Convolve convolve, const Rows& rows) {
  return [=] { return std::vector{convolve(rows.x, rows.taps)}; };
}

/// The graph is built once and kept.
Call backward_of(Convolve convolve, const Rows& rows) {
  const c10::AutoGradMode with_graph(true);
  const Tensor x = rows.x.detach().set_requires_grad(true),
               taps = rows.taps.detach().set_requires_grad(true);
  const Tensor y = convolve(x, taps);
  return [=] {
    return torch::autograd::grad({y}, {x, taps}, {rows.grad_out},
                                 /*retain_graph=*/true);
  };
}

}  // namespace

void measure_convolution_cases(const LinearPlan& plan, Comparer& comparer) {
  const Shape shape = {plan.quick ? 1024 : 4096, 8, 64, 64};
  const int64_t width = shape.heads * shape.d;
  const auto normal = [&](int64_t rows) {
    return at::randn({1, rows, width}, at::kFloat);
  };
  const Rows rows = {normal(shape.n), normal(kTokens)[0], normal(shape.n)};
  set_threads(1);
  Comparison c;
  c.name = "short_convolution", c.shape = shape;
  // A product and a sum a tap; twice that backward.
  const double gflop = 1e-9 * static_cast<double>(2 * kTokens * width * shape.n);
  c.direction = "forward", c.gflop = gflop, c.ours = forward_of(ours, rows);
  c.baselines = {{"plain", forward_of(convolved_by_products, rows)},
                 {"conv1d", forward_of(convolved_by_conv1d, rows)}};
  comparer.measure(c);
  c.direction = "backward", c.gflop = 2 * gflop, c.ours = backward_of(ours, rows);
  c.baselines = {{"plain", backward_of(convolved_by_products, rows)},
                 {"conv1d", backward_of(convolved_by_conv1d, rows)}};
  comparer.measure(c);
}

}  // namespace lagwise::bench
