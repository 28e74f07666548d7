#include "bench/exact_calls.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <atomic>
#include <cmath>

#include "bench/naive_relative.h"
#include "lagwise/ops/exact_step.h"
#include "lagwise/ops/toeplitz_linear.h"

namespace lagwise::bench {
namespace {

using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// A call of one of the passes of `function` over `inputs`, all of them leaves.
Call call_of(const Function& function, const std::vector<at::Tensor>& inputs,
             const at::Tensor& grad_out, Pass pass) {
  if (pass == Pass::forward)
    return [=] {
      const c10::NoGradGuard no_graph;
      return std::vector{function(inputs)};
    };
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& x : inputs)
    leaves.push_back(x.detach().set_requires_grad(true));
  if (pass == Pass::both)
    return [=] {
      const c10::AutoGradMode with_graph(true);
      const at::Tensor out = function(leaves);
      auto results = torch::autograd::grad({out}, leaves, {grad_out});
      results.push_back(out.detach());
      return results;
    };
  const c10::AutoGradMode with_graph(true);
  const at::Tensor out = function(leaves);
  return [=] {
    return torch::autograd::grad({out}, leaves, {grad_out}, /*retain_graph=*/true);
  };
}

double scale_of(const ExactInputs& in) {
  return 1.0 / std::sqrt(static_cast<double>(in.q.size(3)));
}

}  // namespace

ExactInputs exact_inputs(int64_t n, int64_t heads, int64_t d) {
  const auto rows = [&] { return at::randn({1, heads, n, d}, at::kFloat); };
  const at::Tensor head = at::arange(1, heads + 1, at::kFloat);
  const at::Tensor slope = at::exp(head * (-8 * std::log(2.0) / double(heads)));
  const at::Tensor distance = (at::arange(2 * n - 1, at::kFloat) - (n - 1)).abs();
  return {rows(),
          rows(),
          rows(),
          rows(),
          -slope.unsqueeze(1) * distance,
          at::randn({n, d}, at::kFloat)};
}

Call our_alibi(const ExactInputs& in, bool causal, Pass pass) {
  ops::ExactOptions options;
  options.causal = causal;
  options.lag_bias = in.lag_bias;
  return call_of(
      [=](const std::vector<at::Tensor>& x) {
        return ops::exact_attention(x[0], x[1], x[2], options);
      },
      {in.q, in.k, in.v}, in.grad_out, pass);
}

Call our_huang(const ExactInputs& in, Pass pass) {
  const int64_t n = in.q.size(2);
  return call_of(
      [n](const std::vector<at::Tensor>& x) {
        // Entries of lags -(N-1) .. -1 are hidden; then lag 0, the last row, and on.
        const at::Tensor& e = x[3];
        ops::ExactOptions options;
        options.causal = true;
        options.lag_keys =
            at::cat({at::zeros({n - 1, e.size(1)}, e.options()), e.flip({0})}, 0)
                .unsqueeze(0);
        return ops::exact_attention(x[0], x[1], x[2], options);
      },
      {in.q, in.k, in.v, in.table}, in.grad_out, pass);
}

Call naive_alibi(const ExactInputs& in, Pass pass) {
  return call_of(
      [scale = scale_of(in),
       bias = spread_bias(in.lag_bias)](const std::vector<at::Tensor>& x) {
        return naive_biased(x[0], x[1], x[2], bias, scale);
      },
      {in.q, in.k, in.v}, in.grad_out, pass);
}

Call naive_huang(const ExactInputs& in, Pass pass) {
  return call_of(
      [](const std::vector<at::Tensor>& x) {
        return skewed_huang(x[0], x[1], x[2], x[3]);
      },
      {in.q, in.k, in.v, in.table}, in.grad_out, pass);
}

Call our_toeplitz(const ExactInputs& in, Pass pass) {
  return call_of(
      [bias = in.lag_bias](const std::vector<at::Tensor>& x) {
        return ops::toeplitz_linear(x[0], x[1], x[2], bias);
      },
      {in.q.abs(), in.k.abs(), in.v}, in.grad_out, pass);
}

ExactDecoding exact_decoding(int64_t length, int64_t heads, int64_t d,
                             at::ScalarType storage) {
  const auto rows = [&] {
    return at::randn({1, heads, length, d}, at::kFloat).to(storage);
  };
  return {at::randn({1, heads, d}, at::kFloat), rows(), rows(),
          at::randn({heads, length}, at::kFloat)};
}

Call our_exact_step(const ExactDecoding& at) {
  return [at] {
    const c10::NoGradGuard no_graph;
    ops::ExactStepOptions options;
    options.lag_bias = at.lag_bias;
    return std::vector{ops::exact_attention_step(at.q, at.k, at.v, options)};
  };
}

Call naive_step(const ExactDecoding& at) {
  return [at, bias = at.lag_bias.flip({1}).unsqueeze(1).contiguous()] {
    const c10::NoGradGuard no_graph;
    const double scale = 1.0 / std::sqrt(static_cast<double>(at.q.size(2)));
    const at::Tensor scores =
        at::matmul((at.q * scale).unsqueeze(2), at.k.transpose(-1, -2)) + bias;
    return std::vector{at::matmul(at::softmax(scores, -1), at.v).squeeze(2)};
  };
}

Call read_cache(const ExactDecoding& at) {
  return [at] {
    std::atomic<uint64_t> all = 0;
    for (const at::Tensor& x : {at.k, at.v}) {
      const auto* words = static_cast<const uint64_t*>(x.data_ptr());
      const auto count = static_cast<int64_t>(x.nbytes() / 64);
      at::parallel_for(0, count, 4096, [&](int64_t begin, int64_t end) {
        uint64_t a = 0, b = 0, c = 0, d = 0;
        for (const uint64_t *w = words + 8 * begin, *last = words + 8 * end; w < last;
             w += 8) {
          a += w[0] ^ w[4], b += w[1] ^ w[5], c += w[2] ^ w[6], d += w[3] ^ w[7];
        }
        all += a + b + c + d;
      });
    }
    const at::Tensor sum = at::empty({1}, at::kLong);
    *sum.data_ptr<int64_t>() = static_cast<int64_t>(all.load());
    return std::vector{sum};  // or the reading would be left out
  };
}

}  // namespace lagwise::bench
