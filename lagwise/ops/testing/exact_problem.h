#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "lagwise/ops/exact_attention.h"
#include "lagwise/ops/testing/linear_outcome.h"

/// Test support: everything one call of exact attention takes, with random numbers,
/// and what comes out of it.
namespace lagwise::ops::testing {

struct ExactProblem {
  at::Tensor q, k, v;
  ExactOptions options;
  at::Tensor grad_out;
};

inline std::vector<NamedTensor> inputs(ExactProblem& p) {
  std::vector<NamedTensor> all = {{"q", &p.q},
                                  {"k", &p.k},
                                  {"v", &p.v},
                                  {"lag_bias", &p.options.lag_bias},
                                  {"lag_keys", &p.options.lag_keys},
                                  {"lag_values", &p.options.lag_values},
                                  {"key_bias", &p.options.key_bias}};
  std::erase_if(all, [](const NamedTensor& x) { return !x.tensor->defined(); });
  return all;
}

struct ExactShape {
  int64_t batch = 2, heads = 3, n = 33, m = 33, d = 16, e = 7;
  int64_t bias = 0, keys = 0, values = 0;  ///< heads of the tables; 0: no table
  bool key_bias = false;
};

inline ExactProblem random_exact(const ExactShape& x, const ExactOptions& options,
                                 uint64_t seed = 1) {
  Random random(seed);
  const int64_t lags = std::max<int64_t>(0, x.n + x.m - 1);
  ExactProblem p{random.normal({x.batch, x.heads, x.n, x.d}),
                 random.normal({x.batch, x.heads, x.m, x.d}),
                 random.normal({x.batch, x.heads, x.m, x.e}), options,
                 random.normal({x.batch, x.heads, x.n, x.e})};
  if (x.bias) p.options.lag_bias = random.normal({x.bias, lags});
  if (x.keys) p.options.lag_keys = random.normal({x.keys, lags, x.d});
  if (x.values) p.options.lag_values = random.normal({x.values, lags, x.e});
  // Like a forget gate's: it grows along the keys, by more than scores differ.
  if (x.key_bias)
    p.options.key_bias = random.uniform({x.batch, x.heads, x.m}, 0.0F, 0.125F)
                             .cumsum(2)
                             .to(at::kFloat)
                             .to(at::kDouble);
  return p;
}

template <class Change>
ExactProblem map_tensors(ExactProblem p, const Change& change) {
  for (const NamedTensor& x : inputs(p)) *x.tensor = change(*x.tensor);
  p.grad_out = change(p.grad_out);
  return p;
}

inline ExactProblem cast(const ExactProblem& p, at::ScalarType type) {
  return map_tensors(p, [&](const at::Tensor& t) { return t.to(type); });
}

using ExactFunction = at::Tensor (*)(const at::Tensor&, const at::Tensor&,
                                     const at::Tensor&, const ExactOptions&);

/// The output, and the gradient of every input.
inline Outcome run(ExactFunction attention, ExactProblem p) {
  std::vector<at::Tensor> leaves;
  for (const NamedTensor& x : inputs(p)) {
    *x.tensor = x.tensor->detach().set_requires_grad(true);
    leaves.push_back(*x.tensor);
  }
  const at::Tensor out = attention(p.q, p.k, p.v, p.options);
  Outcome outcome = {{"out", out.detach()}};
  const auto grads =
      torch::autograd::grad({out}, leaves, {p.grad_out}, false, false, true);
  size_t i = 0;
  for (const NamedTensor& x : inputs(p)) {
    const at::Tensor& grad = grads[i++];
    const bool empty = x.tensor->numel() == 0;
    outcome.push_back({"d" + x.name, empty ? x.tensor->detach() : grad});
  }
  return outcome;
}

}  // namespace lagwise::ops::testing
