#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "lagwise/ops/testing/linear_reference.h"

/// Test support: the definition of linear attention with gates and writing strengths,
/// token by token, with no cleverness. Its gradients are autograd's; f64 makes it the
/// reference, f32 what plain torch loses.
namespace lagwise::ops::reference {

/// log of the factor before each row, [B, H, N, 1 or D].
inline at::Tensor log_factors(const at::Tensor& v, const LinearOptions& options) {
  at::Tensor log_g = at::zeros({v.size(0), v.size(1), v.size(2), 1}, v.options());
  if (options.log_decay.defined()) log_g = log_g + options.log_decay.unsqueeze(-1);
  if (options.decay.defined())
    log_g = log_g + log_factor(options.decay, v).unsqueeze(1);
  return log_g;
}

/// num_i / den_i after eps, and 0 where den_i is 0.
inline at::Tensor divided(const at::Tensor& num, const at::Tensor& raw,
                          const LinearOptions& options) {
  const at::Tensor den =
      options.eps_mode == "add" ? raw + options.eps : raw.clamp_min(options.eps);
  const at::Tensor nothing = den.eq(0);
  return (num / den.masked_fill(nothing, 1)).masked_fill(nothing, 0);
}

inline LinearResult by_token(const at::Tensor& q, const at::Tensor& k,
                             const at::Tensor& v, const LinearState& from,
                             const LinearOptions& options) {
  const auto phi = [&](const at::Tensor& x) {
    return feature_map(x, options.feature_map);
  };
  const auto given = [&](const at::Tensor& t, at::IntArrayRef shape) {
    return t.defined() ? t : at::zeros(shape, v.options());
  };
  const bool separate = options.denominator == "separate";
  const bool divides = options.denominator != "none";
  const at::Tensor fq = phi(q), fk = phi(k), g = at::exp(log_factors(v, options));
  const at::Tensor nq = separate ? phi(options.q_norm) : fq;
  const at::Tensor nk = separate ? phi(options.k_norm) : fk;
  at::Tensor s = given(from.s, {v.size(0), v.size(1), q.size(3), v.size(3)});
  at::Tensor z = given(from.z, {v.size(0), v.size(1), divides ? nq.size(3) : 0});
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < q.size(2); ++t) {
    const at::Tensor key = fk.select(2, t).unsqueeze(-1);
    at::Tensor written = v.select(2, t).unsqueeze(-2);
    s = g.select(2, t).unsqueeze(-1) * s;
    if (options.write_strength.defined()) {
      const at::Tensor b = options.write_strength.select(2, t);
      written = b.unsqueeze(-1).unsqueeze(-1) *
                (written - at::matmul(key.transpose(-1, -2), s));
    }
    s = s + key * written;
    out.push_back(at::matmul(fq.select(2, t).unsqueeze(-2), s).squeeze(-2));
    if (!divides) continue;
    z = g.select(2, t) * z + nk.select(2, t);
    out.back() = divided(out.back(), (nq.select(2, t) * z).sum(-1, true), options);
  }
  return {out.empty() ? v.narrow(2, 0, 0) : at::stack(out, 2), {s, z}};
}

}  // namespace lagwise::ops::reference
