#include "bench/torch_linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <string>
#include <vector>

namespace lagwise::bench {
namespace {

using at::Tensor;

// phi(x), from the option's text: none, elu1, relu[:offset=0.001].
Tensor apply_feature_map(const Tensor& x, const std::string& text) {
  if (text == "none") return x;
  if (text == "elu1") return at::elu(x) + 1;
  const std::string key = "offset=";
  const auto at_key = text.find(key);
  const double offset =
      at_key == std::string::npos ? 1e-3 : std::stod(text.substr(at_key + key.size()));
  return x.clamp_min(0) + offset;
}

// Powers of the decay g that one chunk of C rows needs; undefined: no decay.
// Every exponent is >= 0, so nothing overflows however fast the past fades.
// The last axis is 1 for a decay per head and D for one per channel.
struct Fade {
  Tensor within;  // g^(i-j) for j <= i, else 0: [H, C, C, 1 or D]
  Tensor since;   // g^(i+1), from the chunk's start to row i: [H, C, 1 or D]
  Tensor until;   // g^(C-1-j), from row j to the chunk's end: [H, C, 1 or D]
};

Fade make_fade(const Tensor& decay, int64_t chunk) {
  if (!decay.defined()) return {};
  const Tensor log_g = decay.dim() == 1 ? decay.unsqueeze(1) : decay;  // [H, 1 or D]
  const Tensor row = at::arange(chunk, log_g.options()).unsqueeze(1);  // [C, 1]
  const Tensor lag = row - row.transpose(0, 1);                        // [C, C]
  const Tensor visible = lag.ge(0).to(log_g.scalar_type()).unsqueeze(-1);
  const Tensor steps = lag.clamp_min(0).unsqueeze(-1);  // [C, C, 1]
  const Tensor log_row = log_g.unsqueeze(1);            // [H, 1, 1 or D]
  return {(log_row.unsqueeze(1) * steps).exp() * visible, (log_row * (row + 1)).exp(),
          (log_row * (chunk - 1 - row)).exp()};
}

// The same powers for the first `rows` rows of a chunk (the last may be short).
Fade shorten(const Fade& fade, int64_t rows) {
  if (!fade.within.defined()) return {};
  const int64_t chunk = fade.within.size(1);
  if (rows == chunk) return fade;
  return {fade.within.narrow(1, 0, rows).narrow(2, 0, rows),
          fade.since.narrow(1, 0, rows), fade.until.narrow(1, chunk - rows, rows)};
}

Tensor times(const Tensor& x, const Tensor& factor) {
  return factor.defined() ? x * factor : x;
}

// A_ij = sum_d q_id k_jd g_d^(i-j) for j <= i: [B, H, C, C].
Tensor chunk_weights(const Tensor& q, const Tensor& k, const Fade& fade) {
  if (!fade.within.defined()) return at::matmul(q, k.transpose(-1, -2)).tril();
  if (fade.within.size(-1) == 1) {
    return at::matmul(q, k.transpose(-1, -2)) * fade.within.squeeze(-1);
  }
  return (q.unsqueeze(3) * k.unsqueeze(2) * fade.within).sum(-1);
}

// g^C as a factor on the rows of S [B, H, D, E]: [H, 1 or D, 1].
Tensor whole_chunk(const Fade& fade) {
  if (!fade.since.defined()) return {};
  return fade.since.narrow(1, fade.since.size(1) - 1, 1).transpose(-1, -2);
}

// q_i . z and the sum over the chunk's keys: the denominator before eps, [B, H, C, 1].
Tensor chunk_sum(const Tensor& weights, const Tensor& faded_q, const Tensor& z) {
  return weights.sum(-1, true) + at::matmul(faded_q, z.unsqueeze(-1));
}

Tensor advance_s(const Tensor& s, const Tensor& faded_k, const Tensor& v,
                 const Tensor& whole) {
  return times(s, whole) + at::matmul(faded_k.transpose(-1, -2), v);
}

Tensor advance_z(const Tensor& z, const Tensor& faded_k, const Tensor& whole) {
  return times(z.unsqueeze(-1), whole).squeeze(-1) + faded_k.sum(-2);
}

// num / den with den after eps, and 0 where it is 0.
Tensor divide(const Tensor& num, const Tensor& raw, const ops::LinearOptions& options) {
  const Tensor den =
      options.eps_mode == "add" ? raw + options.eps : raw.clamp_min(options.eps);
  const Tensor empty = den.eq(0);
  return (num / den.masked_fill(empty, 1)).masked_fill(empty, 0);
}

struct Features {
  Tensor q, k, q_norm, k_norm;  // after phi; the last two only where separate
};

Features make_features(const Tensor& q, const Tensor& k,
                       const ops::LinearOptions& options) {
  const auto phi = [&](const Tensor& x) {
    return apply_feature_map(x, options.feature_map);
  };
  if (options.denominator != "separate") return {phi(q), phi(k), {}, {}};
  return {phi(q), phi(k), phi(options.q_norm), phi(options.k_norm)};
}

ops::LinearState initial_state(const Features& x, const Tensor& v,
                               const ops::LinearState& from,
                               const std::string& denominator) {
  const int64_t batch = v.size(0), heads = v.size(1), d = x.k.size(3);
  const int64_t z_width = denominator == "none"   ? 0
                          : denominator == "same" ? d
                                                  : x.k_norm.size(3);
  return {
      from.s.defined() ? from.s : at::zeros({batch, heads, d, v.size(3)}, v.options()),
      from.z.defined() ? from.z : at::zeros({batch, heads, z_width}, v.options())};
}

ops::LinearResult full(const Features& x, const Tensor& v, ops::LinearState state,
                       const ops::LinearOptions& options) {
  const bool separate = options.denominator == "separate";
  state.s = advance_s(state.s, x.k, v, {});
  const Tensor num = at::matmul(x.q, state.s);
  if (options.denominator == "none") return {num, state};
  state.z = advance_z(state.z, separate ? x.k_norm : x.k, {});
  const Tensor raw = at::matmul(separate ? x.q_norm : x.q, state.z.unsqueeze(-1));
  return {divide(num, raw, options), state};
}

// One chunk: reads and advances the state, returns [B, H, C, E].
Tensor chunk_step(const Features& x, const Tensor& v, const Fade& fade,
                  ops::LinearState& state, const ops::LinearOptions& options) {
  const Tensor weights = chunk_weights(x.q, x.k, fade);
  const Tensor faded_q = times(x.q, fade.since), faded_k = times(x.k, fade.until);
  const Tensor whole = whole_chunk(fade);
  const Tensor num = at::matmul(weights, v) + at::matmul(faded_q, state.s);
  state.s = advance_s(state.s, faded_k, v, whole);
  if (options.denominator == "none") return num;
  if (options.denominator == "same") {
    const Tensor raw = chunk_sum(weights, faded_q, state.z);
    state.z = advance_z(state.z, faded_k, whole);
    return divide(num, raw, options);
  }
  const Tensor raw = chunk_sum(chunk_weights(x.q_norm, x.k_norm, fade),
                               times(x.q_norm, fade.since), state.z);
  state.z = advance_z(state.z, times(x.k_norm, fade.until), whole);
  return divide(num, raw, options);
}

ops::LinearResult causal(const Features& x, const Tensor& v, ops::LinearState state,
                         const ops::LinearOptions& options) {
  const bool by_channel = options.decay.defined() && options.decay.dim() == 2;
  const int64_t rows = v.size(2), chunk = by_channel ? 16 : 128;
  if (rows == 0) return {at::zeros(v.sizes(), v.options()), state};
  // split, not narrow: its backward is one cat instead of one full copy per chunk.
  const auto cut = [&](const Tensor& t) {
    return t.defined() ? t.split(chunk, 2) : std::vector<Tensor>();
  };
  const auto q = cut(x.q), k = cut(x.k), values = cut(v);
  const auto q_norm = cut(x.q_norm), k_norm = cut(x.k_norm);
  const Fade fade = make_fade(options.decay, chunk);
  std::vector<Tensor> out;
  for (size_t c = 0; c < q.size(); ++c) {
    const Features part = {q[c], k[c], q_norm.empty() ? Tensor() : q_norm[c],
                           k_norm.empty() ? Tensor() : k_norm[c]};
    const Fade part_fade = shorten(fade, q[c].size(2));
    out.push_back(chunk_step(part, values[c], part_fade, state, options));
  }
  return {at::cat(out, 2), state};
}

}  // namespace

ops::LinearResult torch_linear(const Tensor& q, const Tensor& k, const Tensor& v,
                               const ops::LinearState& from,
                               const ops::LinearOptions& options) {
  const Features x = make_features(q, k, options);
  const ops::LinearState state = initial_state(x, v, from, options.denominator);
  return options.causal ? causal(x, v, state, options) : full(x, v, state, options);
}

Tensor torch_step(const Tensor& q, const Tensor& k, const Tensor& v,
                  const ops::LinearState& state, const ops::LinearOptions& options) {
  const Features x = make_features(q, k, options);
  const bool separate = options.denominator == "separate";
  if (options.decay.defined()) {
    const Tensor g = options.decay.exp();  // [H] or [H, D]
    const Tensor by_row = g.dim() == 1 ? g.unsqueeze(-1) : g;
    state.s.mul_(by_row.unsqueeze(-1));
    if (options.denominator != "none") state.z.mul_(by_row);
  }
  state.s.add_(x.k.unsqueeze(-1) * v.unsqueeze(-2));
  const Tensor num = at::matmul(x.q.unsqueeze(-2), state.s).squeeze(-2);
  if (options.denominator == "none") return num;
  state.z.add_(separate ? x.k_norm : x.k);
  const Tensor raw = ((separate ? x.q_norm : x.q) * state.z).sum(-1, true);
  return divide(num, raw, options);
}

}  // namespace lagwise::bench
