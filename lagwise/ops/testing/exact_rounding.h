#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <vector>

#include "lagwise/ops/testing/exact_problem.h"
#include "lagwise/ops/testing/exact_reference.h"
#include "lagwise/ops/testing/rounding.h"

/// Test support: what the results of exact attention may lose to rounding (see
/// rounding.h).
namespace lagwise::ops::testing {

/// What each result may lose, in the order of `run`, to first order in the unit
/// roundoff. With r(n) what a sum of n terms loses of the sum of their sizes:
///
///     score    e_s  = r(D) (scale (|q_i| . |k_j| + |q_i| . |lag_keys|) + |lag_bias|)
///     weight   e_w  = w (e_s + sum_j w e_s + r(M))
///     out      sum_j (e_w + r(M) w) (|v_j| + |lag_values|);  dv, d lag_values alike
///     dp       e_p  = r(E) P,   P = |g_i| . (|v_j| + |lag_values|)
///     g . o    e_m  = sum_j e_w |dp - g . o| + (r(E) + r(M)) sum_j w P
///     ds       e_ds = e_w |dp - g . o| + w (e_p + e_m)
///     dk       sum_i (e_ds + r(N) |ds|) |q_i|;  dq, d lag_keys, d lag_bias alike
///
/// A score that errs by x changes its weight by w x, and through the softmax's
/// denominator those of its row; a change of all dp alike changes no ds.
inline Outcome rounding_of(const ExactProblem& p) {
  const int64_t n = p.q.size(2), m = p.k.size(2), d = p.q.size(3), e = p.v.size(3);
  const at::Tensor seen = reference::visible(p.q, p.k, p.options);
  const at::Tensor index = reference::lag_index(p.q, p.k, p.options);
  const at::Tensor w = reference::weights(reference::scores(p.q, p.k, p.options), seen);
  const auto d_weights = [&](const ExactProblem& x) {
    const at::Tensor leaf = w.detach().set_requires_grad(true);
    const at::Tensor out = reference::mix(leaf, x.v, x.options.lag_values, index);
    return torch::autograd::grad({out}, {leaf}, {x.grad_out})[0];
  };
  const auto over_keys = [](const at::Tensor& x) { return x.sum(-1, true); };
  const at::Tensor dp = d_weights(p), gap = dp - over_keys(w * dp);
  ExactProblem size = map_tensors(p, [](const at::Tensor& t) { return t.abs(); });
  const at::Tensor products = d_weights(size);
  std::vector<at::Tensor> leaves;
  for (const NamedTensor& x : inputs(size)) {
    *x.tensor = x.tensor->detach().set_requires_grad(true);
    leaves.push_back(*x.tensor);
  }
  const at::Tensor scores = reference::scores(size.q, size.k, size.options);
  const at::Tensor e_s = loss_of_sum(d) * scores.detach();
  const at::Tensor e_w = w * (e_s + over_keys(w * e_s) + loss_of_sum(m));
  const at::Tensor e_m = over_keys(e_w * gap.abs()) +
                         (loss_of_sum(e) + loss_of_sum(m)) * over_keys(w * products);
  const at::Tensor e_ds = e_w * gap.abs() + w * (loss_of_sum(e) * products + e_m);
  const double last = loss_of_sum(std::max(n, m));
  const at::Tensor out =
      reference::mix(e_w + last * w, size.v, size.options.lag_values, index);
  const auto grads = torch::autograd::grad(
      {out, scores}, leaves, {size.grad_out, e_ds + last * (w * gap).abs()}, false,
      false, true);
  Outcome losses = {{"out", out.detach()}};
  size_t i = 0;
  for (const NamedTensor& x : inputs(size))
    losses.push_back({"d" + x.name, grads[i++]});
  return losses;
}

}  // namespace lagwise::ops::testing
