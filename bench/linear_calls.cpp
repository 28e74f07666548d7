#include "bench/linear_calls.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/torch_linear.h"
#include "lagwise/kernels/linear_attention.h"

namespace lagwise::bench {
namespace {

Inputs leaves_of(const Inputs& in) {
  const auto leaf = [](const at::Tensor& x) {
    return x.detach().set_requires_grad(true);
  };
  return {leaf(in.q), leaf(in.k), leaf(in.v)};
}

/// The gradient of `out` alone: its graph is built once and kept.
Call gradient_call(const at::Tensor& out, const Inputs& leaves,
                   const at::Tensor& grad_out) {
  return [=] {
    return torch::autograd::grad({out}, {leaves.q, leaves.k, leaves.v}, {grad_out},
                                 /*retain_graph=*/true);
  };
}

}  // namespace

Inputs random_inputs(const Shape& shape) {
  const auto rows = [&](int64_t width) {
    return at::rand({1, shape.heads, shape.n, width}, at::kFloat);
  };
  return {rows(shape.d), rows(shape.d), rows(shape.e)};
}

ops::LinearOptions causal(const std::string& feature_map,
                          const std::string& denominator) {
  ops::LinearOptions options;
  options.causal = true;
  options.feature_map = feature_map;
  options.denominator = denominator;
  return options;
}

ops::LinearOptions bare_product() { return causal("none", "none"); }

Call our_forward(const Inputs& in, const ops::LinearOptions& options) {
  return [=] { return std::vector{ops::linear_attention(in.q, in.k, in.v, options)}; };
}

Call torch_forward(const Inputs& in, const ops::LinearOptions& options) {
  return [=] { return std::vector{torch_linear(in.q, in.k, in.v, {}, options).out}; };
}

Call recurrence_forward(const Inputs& in, Passes passes) {
  return
      [=] { return std::vector{recurrence(in.q, in.k, in.v, {.passes = passes}).out}; };
}

Call kernel_forward(const Inputs& in) {
  return [=] {
    const int64_t n = in.q.size(2), d = in.q.size(3), e = in.v.size(3);
    const at::Tensor out = at::empty({1, 1, n, e}, at::kFloat);
    const at::Tensor s = at::zeros({d, e}, at::kFloat);
    const at::Tensor scratch =
        at::empty({kernels::linear_scratch<float>(d, e)}, at::kFloat);
    const auto rows = [&](const at::Tensor& x) {
      return MatView<const float>{x.data_ptr<float>(), n, x.size(3), x.size(3), 1};
    };
    kernels::causal_linear<float>(
        {.x = rows(in.q)}, {.x = rows(in.k)}, {.x = rows(in.v)}, {}, {},
        {s.data_ptr<float>(), d, e, e, 1}, {.out = {out.data_ptr<float>(), n, e, e, 1}},
        scratch.data_ptr<float>());
    return std::vector{out};
  };
}

Call our_gradient(const Inputs& in, const at::Tensor& grad_out) {
  const c10::AutoGradMode with_graph(true);
  const Inputs leaves = leaves_of(in);
  return gradient_call(
      ops::linear_attention(leaves.q, leaves.k, leaves.v, causal("none", "same")),
      leaves, grad_out);
}

Call torch_gradient(const Inputs& in, const at::Tensor& grad_out) {
  const c10::AutoGradMode with_graph(true);
  const Inputs leaves = leaves_of(in);
  return gradient_call(
      torch_linear(leaves.q, leaves.k, leaves.v, {}, causal("none", "same")).out,
      leaves, grad_out);
}

Call recurrence_gradient(const Inputs& in, const at::Tensor& grad_out, Passes passes) {
  const RecurrenceOptions options = {.normalised = true, .passes = passes};
  const RecurrenceResult result = recurrence(in.q, in.k, in.v, options);
  return [=] {
    const auto grads = recurrence_backward(in.q, in.k, in.v, result, grad_out, options);
    return std::vector{grads.dq, grads.dk, grads.dv};
  };
}

Decoding decoding_at(int64_t position, const Shape& shape) {
  const Inputs token = random_inputs({1, shape.heads, shape.d, shape.e});
  const Decoding at = {token.q.squeeze(2),
                       token.k.squeeze(2),
                       token.v.squeeze(2),
                       {at::zeros({1, shape.heads, shape.d, shape.e}),
                        at::zeros({1, shape.heads, shape.d})}};
  const Call step = our_step(at);
  for (int64_t i = 0; i < position; ++i) step();
  return at;
}

Call our_step(const Decoding& at) {
  return [at, options = causal("none", "same")] {
    return std::vector{ops::linear_attention_step(at.q, at.k, at.v, at.state, options)};
  };
}

Call eager_step(const Decoding& at) {
  return [at, options = causal("none", "same")] {
    return std::vector{torch_step(at.q, at.k, at.v, at.state, options)};
  };
}

}  // namespace lagwise::bench
