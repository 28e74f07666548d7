#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <algorithm>

#include "lagwise/ops/testing/linear_outcome.h"
#include "lagwise/ops/testing/linear_reference.h"
#include "lagwise/ops/testing/rounding.h"

/// Test support: what the results of linear attention may lose to rounding (see
/// rounding.h).
namespace lagwise::ops::testing {

/// Linear attention with every term counted by its size, so that nothing cancels: the
/// features, values and states without their signs, and a quotient num / den whose
/// derivative by den is +num / den^2. Where features make a denominator they are
/// positive already.
inline LinearResult linear_sizes(const at::Tensor& q, const at::Tensor& k,
                                 const at::Tensor& v, const LinearState& from,
                                 const LinearOptions& options) {
  const auto phi = [&](const at::Tensor& x) {
    return reference::feature_map(x, options.feature_map).abs();
  };
  const auto size = [&](const at::Tensor& t, at::IntArrayRef shape) {
    return t.defined() ? t.abs() : at::zeros(shape, v.options());
  };
  const int64_t batch = v.size(0), heads = v.size(1);
  const at::Tensor fq = phi(q), fk = phi(k);
  const at::Tensor log_g = reference::log_factor(options.decay, v);
  const auto [num, s] = reference::sum_over_past(
      fq, fk, v.abs(), size(from.s, {batch, heads, q.size(3), v.size(3)}), log_g,
      options.causal);
  if (options.denominator == "none") return {num, {s, size(from.z, {batch, heads, 0})}};
  const bool separate = options.denominator == "separate";
  const at::Tensor nq = separate ? phi(options.q_norm) : fq;
  const at::Tensor nk = separate ? phi(options.k_norm) : fk;
  const auto [raw, z] = reference::normaliser(
      nq, nk, size(from.z, {batch, heads, nq.size(3)}), log_g, options.causal);
  const at::Tensor den =
      options.eps_mode == "add" ? raw + options.eps : raw.clamp_min(options.eps);
  const at::Tensor nothing = den.eq(0), fixed = den.detach().masked_fill(nothing, 1);
  const at::Tensor slope = num.detach() / (fixed * fixed);
  return {(num / fixed + slope * (den - den.detach())).masked_fill(nothing, 0), {s, z}};
}

/// What each result may lose, in the order of `run`.
inline Outcome rounding_of(Problem p) {
  for (at::Tensor* grad : {&p.grad_out, &p.grad_s, &p.grad_z}) *grad = grad->abs();
  const double loss =
      loss_of_sum(std::max({p.q.size(2), p.k.size(2), p.q.size(3), p.v.size(3)}));
  Outcome losses = run(linear_sizes, p);
  for (Result& x : losses)
    if (x.value.defined()) x.value = loss * x.value.abs();
  return losses;
}

}  // namespace lagwise::ops::testing
