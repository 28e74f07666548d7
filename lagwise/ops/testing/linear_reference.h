#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <string>
#include <utility>
#include <vector>

#include "lagwise/ops/linear_attention.h"

/// Test support: the definition of linear attention, with no cleverness. The
/// tests call it in double; its gradients are autograd's.
namespace lagwise::ops::reference {

inline at::Tensor feature_map(const at::Tensor& x, const std::string& text) {
  if (text == "none") return x;
  // clamp_max: the branch not taken must not send inf or NaN into a gradient.
  if (text == "elu1") return at::where(x.gt(0), x + 1, x.clamp_max(0).exp());
  const auto equals = text.find('=');
  const double offset =
      equals == std::string::npos ? 1e-3 : std::stod(text.substr(equals + 1));
  return at::where(x.gt(0), x, at::zeros({}, x.options())) + offset;
}

/// log g as [H, 1] or [H, D]; zeros where there is no decay.
inline at::Tensor log_factor(const at::Tensor& decay, const at::Tensor& v) {
  if (!decay.defined()) return at::zeros({v.size(1), 1}, v.options());
  return decay.dim() == 1 ? decay.unsqueeze(1) : decay;
}

/// sum_d q_id k_jd g_d^(i-j) over visible j, as explicit weights [B, H, N, M].
inline at::Tensor pair_weights(const at::Tensor& q, const at::Tensor& k,
                               const at::Tensor& log_g, bool causal) {
  if (!causal) return at::matmul(q, k.transpose(-1, -2));
  const at::Tensor i = at::arange(q.size(2), q.options()).unsqueeze(1);
  const at::Tensor j = at::arange(k.size(2), q.options()).unsqueeze(0);
  const at::Tensor lag = i - j;
  // [H, N, M, 1 or D]; the exponent of a hidden pair is set to 0 first, so that
  // no gradient meets an overflow.
  const at::Tensor power =
      at::exp(log_g.unsqueeze(1).unsqueeze(1) * lag.clamp_min(0).unsqueeze(-1));
  const at::Tensor seen = lag.ge(0).to(q.scalar_type());
  if (power.size(-1) == 1) {
    return at::matmul(q, k.transpose(-1, -2)) * power.squeeze(-1) * seen;
  }
  return (q.unsqueeze(3) * k.unsqueeze(2) * power).sum(-1) * seen;
}

/// One sum over the past for every row and the state after the last, both with
/// values v [B, H, M, E]; `s` [B, H, D, E] is the state before row 0.
inline std::pair<at::Tensor, at::Tensor> by_weights(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& s,
    const at::Tensor& log_g, bool causal) {
  const at::Tensor weights = pair_weights(q, k, log_g, causal);
  if (!causal) {
    return {at::matmul(weights, v) + at::matmul(q, s),
            s + at::matmul(k.transpose(-1, -2), v)};
  }
  const int64_t n = q.size(2);
  const at::Tensor row = at::arange(n, q.options()).unsqueeze(1);  // [N, 1]
  const at::Tensor log_row = log_g.unsqueeze(1);                   // [H, 1, 1 or D]
  const at::Tensor since = at::exp(log_row * (row + 1));           // g^(i+1)
  const at::Tensor until = at::exp(log_row * (n - 1 - row));       // g^(N-1-j)
  const at::Tensor whole = at::exp(log_g * n).unsqueeze(-1);       // g^N
  return {at::matmul(weights, v) + at::matmul(q * since, s),
          whole * s + at::matmul((k * until).transpose(-1, -2), v)};
}

/// The same, token by token: S_i = g S_{i-1} + k_i v_i^T, num_i = S_i^T q_i.
/// For a decay per channel over many rows, where by_weights would need N M D
/// numbers. A test compares the two.
inline std::pair<at::Tensor, at::Tensor> by_recurrence(const at::Tensor& q,
                                                       const at::Tensor& k,
                                                       const at::Tensor& v,
                                                       at::Tensor s,
                                                       const at::Tensor& log_g) {
  const at::Tensor g = at::exp(log_g).unsqueeze(-1);  // [H, 1 or D, 1]
  const auto rows_q = q.unbind(2), rows_k = k.unbind(2), rows_v = v.unbind(2);
  std::vector<at::Tensor> num;
  for (size_t i = 0; i < rows_q.size(); ++i) {
    s = g * s + rows_k[i].unsqueeze(-1) * rows_v[i].unsqueeze(-2);
    num.push_back(at::matmul(rows_q[i].unsqueeze(-2), s).squeeze(-2));
  }
  return {at::stack(num, 2), s};
}

inline std::pair<at::Tensor, at::Tensor> sum_over_past(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& s,
    const at::Tensor& log_g, bool causal) {
  const bool large = q.size(2) * q.size(2) * log_g.size(1) > 2'000'000;
  if (causal && log_g.size(1) > 1 && large) return by_recurrence(q, k, v, s, log_g);
  return by_weights(q, k, v, s, log_g, causal);
}

/// Before eps: the same sum with every value equal to 1. [B, H, N, 1]
struct Normaliser {
  at::Tensor raw, z;
};

inline Normaliser normaliser(const at::Tensor& q, const at::Tensor& k,
                             const at::Tensor& z, const at::Tensor& log_g,
                             bool causal) {
  const at::Tensor ones =
      at::zeros({k.size(0), k.size(1), k.size(2), 1}, k.options()) + 1;
  const auto [raw, after] = sum_over_past(q, k, ones, z.unsqueeze(-1), log_g, causal);
  return {raw, after.squeeze(-1)};
}

/// out_i = num_i / den_i, and 0 where den_i is 0.
inline LinearResult linear_attention(const at::Tensor& q, const at::Tensor& k,
                                     const at::Tensor& v, const LinearState& from,
                                     const LinearOptions& options) {
  const auto phi = [&](const at::Tensor& x) {
    return feature_map(x, options.feature_map);
  };
  const at::Tensor fq = phi(q), fk = phi(k), log_g = log_factor(options.decay, v);
  const bool separate = options.denominator == "separate";
  const int64_t batch = v.size(0), heads = v.size(1), d = q.size(3);
  const auto given = [&](const at::Tensor& t, at::IntArrayRef shape) {
    return t.defined() ? t : at::zeros(shape, v.options());
  };
  const auto [num, s] = sum_over_past(
      fq, fk, v, given(from.s, {batch, heads, d, v.size(3)}), log_g, options.causal);
  if (options.denominator == "none")
    return {num, {s, given(from.z, {batch, heads, 0})}};
  const at::Tensor nq = separate ? phi(options.q_norm) : fq;
  const at::Tensor nk = separate ? phi(options.k_norm) : fk;
  const auto [raw, z] = normaliser(nq, nk, given(from.z, {batch, heads, nq.size(3)}),
                                   log_g, options.causal);
  const at::Tensor den =
      options.eps_mode == "add" ? raw + options.eps : raw.clamp_min(options.eps);
  const at::Tensor nothing = den.eq(0);
  return {(num / den.masked_fill(nothing, 1)).masked_fill(nothing, 0), {s, z}};
}

}  // namespace lagwise::ops::reference
