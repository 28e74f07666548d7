#include "lagwise/ops/linear/linear_by_token.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "lagwise/ops/feature_map.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using Divide = LinearCall::Divide;

/// The rows of one sequence; log_g [1, H, N, 1 or D].
struct TokenRows {
  Tensor q, k, v, q_norm, k_norm, log_g, strength;
};

Tensor divided(const LinearCall& call, const Tensor& num, const Tensor& raw) {
  const Tensor den = call.clamp ? raw.clamp_min(call.eps) : raw + call.eps;
  const Tensor nothing = den.eq(0);
  return (num / den.masked_fill(nothing, 1)).masked_fill(nothing, 0);
}

Tensor token(const LinearCall& call, const TokenRows& x, int64_t t,
             LinearState& state) {
  const Tensor g = x.log_g.select(2, t).exp().unsqueeze(-1);
  const Tensor k = x.k.select(2, t).unsqueeze(-1);
  Tensor u = x.v.select(2, t).unsqueeze(-2);
  state.s = g * state.s;
  if (x.strength.defined())
    u = x.strength.select(2, t).unsqueeze(-1).unsqueeze(-1) *
        (u - at::matmul(k.transpose(-1, -2), state.s));
  state.s = state.s + k * u;
  const Tensor num = at::matmul(x.q.select(2, t).unsqueeze(-2), state.s).squeeze(-2);
  if (call.divide == Divide::none) return num;
  state.z = g.squeeze(-1) * state.z + x.k_norm.select(2, t);
  return divided(call, num, (x.q_norm.select(2, t) * state.z).sum(-1, true));
}

}  // namespace

LinearResult linear_by_token(const LinearCall& call, const std::string& feature_map_) {
  const auto phi = [&](const Tensor& x) {
    return x.defined() ? feature_map(x, feature_map_) : x;
  };
  Tensor log_g = call.log_decay.defined()
                     ? call.log_decay.unsqueeze(-1)
                     : at::zeros({call.b, call.h, call.n, 1}, call.q.options());
  if (call.decay.defined())
    log_g = log_g + (call.decay.dim() == 2 ? call.decay.unsqueeze(1)
                                           : call.decay.unsqueeze(1).unsqueeze(2));
  const bool separate = call.divide == Divide::separate;
  const Tensor q = phi(call.q), k = phi(call.k);
  const TokenRows all{q,
                      k,
                      call.v,
                      separate ? phi(call.q_norm) : q,
                      separate ? phi(call.k_norm) : k,
                      log_g,
                      call.write_strength};
  std::vector<Tensor> out, s, z;
  for (int64_t i = 0; i < call.states(); ++i) {
    const Sequence& at = call.sequences[static_cast<size_t>(i)];
    const auto cut = [&](const Tensor& x) {
      if (!x.defined()) return x;
      return x.narrow(0, at.row, 1).narrow(2, at.query_begin, at.queries);
    };
    const TokenRows x{cut(all.q),       cut(all.k),      cut(all.v),
                      cut(all.q_norm),  cut(all.k_norm), cut(all.log_g),
                      cut(all.strength)};
    const auto start = [&](const Tensor& given, at::IntArrayRef sizes) {
      return given.defined() ? given.narrow(0, i, 1)
                             : at::zeros(sizes, call.q.options());
    };
    LinearState state{start(call.s, {1, call.h, call.d, call.e}),
                      start(call.z, {1, call.h, call.f})};
    std::vector<Tensor> rows;
    for (int64_t t = 0; t < at.queries; ++t) rows.push_back(token(call, x, t, state));
    out.push_back(rows.empty() ? call.v.narrow(0, at.row, 1).narrow(2, 0, 0)
                               : at::stack(rows, 2));
    if (call.ragged)
      out.back() = at::constant_pad_nd(out.back(), {0, 0, 0, call.n - at.queries});
    s.push_back(state.s), z.push_back(state.z);
  }
  if (call.n == 0) return {call.v + 0 * out[0], {at::cat(s, 0) + 0, at::cat(z, 0) + 0}};
  const bool packed = call.states() != call.b || call.b == 1;
  const Tensor none = at::zeros({call.b, call.h, call.n, call.e}, call.q.options());
  if (out.empty()) return {none, {call.s, call.z}};
  return {at::cat(out, packed ? 2 : 0), {at::cat(s, 0), at::cat(z, 0)}};
}

}  // namespace lagwise::ops
