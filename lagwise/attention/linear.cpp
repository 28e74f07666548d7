#include "lagwise/attention/linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/square.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <stdexcept>

#include "lagwise/attention/shared_state.h"
#include "lagwise/ops/toeplitz_linear.h"
#include "lagwise/ops/torch/numbers_of.h"

namespace lagwise {
namespace {

/// "favor:features=256;norms=chi": the options of a map are divided by ';', because ','
/// divides those of the attention around it.
std::unique_ptr<FeatureMap> nested_map(Spec& spec) {
  std::string text = spec.take("map", "elu1");
  std::replace(text.begin(), text.end(), ';', ',');
  return make_feature_map(text);
}

/// The features themselves, with their scale multiplied in.
at::Tensor scaled(const Features& f) {
  if (!f.log_scale.defined()) return f.x;
  return f.x * f.log_scale.exp().unsqueeze(-1);
}

/// The same, with the largest scale of each head taken out: that keeps them in range,
/// and cancels in num / den.
at::Tensor scaled_to_one(const Features& f) {
  if (!f.log_scale.defined() || f.log_scale.numel() == 0) return f.x;
  const at::Tensor most = f.log_scale.detach().amax(-1, true);
  return f.x * (f.log_scale - most).exp().unsqueeze(-1);
}

/// x [B, H, N, ..] with zeros in the rows past the length of each sequence.
at::Tensor without_padding(const at::Tensor& x, const at::Tensor& lengths) {
  if (!lengths.defined()) return x;
  const at::Tensor real = at::arange(x.size(2), at::kLong).lt(lengths.unsqueeze(1));
  return x * real.view({x.size(0), 1, x.size(2), 1}).to(x.scalar_type());
}

/// What ops::toeplitz_linear computes, pair by pair in O(N M): cheaper for few queries,
/// since a transform takes as long for one as for M.
at::Tensor weigh_pairs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const at::Tensor& lag_bias, double eps) {
  const int64_t n = q.size(2), m = k.size(2);
  const at::Tensor column =
      at::arange(n, at::kLong).unsqueeze(1) - at::arange(m, at::kLong) + (m - 1);
  const at::Tensor bias =
      lag_bias.index_select(1, column.reshape(-1)).view({lag_bias.size(0), n, m});
  // Relative to the largest of a row, which is finite even where all is hidden.
  const at::Tensor top = bias.detach().amax(-1, true).clamp_min(-1e30);
  const at::Tensor weight = at::matmul(q, k.transpose(2, 3)) * (bias - top).exp();
  at::Tensor sum = weight.sum(-1, true);
  if (eps > 0) sum = sum + eps * (-top).exp();
  const at::Tensor nothing = sum.eq(0);
  return at::matmul(weight, v) * sum.reciprocal().masked_fill(nothing, 0);
}

/// x [.., D] with rows of length 1; rows of zeros stay so.
at::Tensor of_unit_length(const at::Tensor& x) {
  constexpr double kTiny = 1e-12;
  return x * (x.square().sum(-1, /*keepdim=*/true) + kTiny).rsqrt();
}

Spec checked_name(std::string_view text) {
  Spec spec(text);
  if (spec.name() != "linear")
    throw std::invalid_argument("expected attention 'linear', got '" + spec.name() +
                                "'");
  return spec;
}

at::Tensor ones(int64_t rows, int64_t cols) {
  return at::ones({rows, cols}, at::kFloat).set_requires_grad(true);
}

at::Tensor without_length(const at::Tensor& x) {
  return x.defined() ? x.squeeze(2) : x;
}

}  // namespace

LinearAttention::LinearAttention(std::string_view text, const HeadShape& shape)
    : LinearAttention(checked_name(text), shape) {}

LinearAttention::LinearAttention(Spec spec, const HeadShape& shape)
    : map_(nested_map(spec)), norm_(spec, shape.heads, shape.value_width()) {
  memory_ = take_memory_options(spec, /*state=*/true);
  divides_ = spec.take_choice("denominator", "auto", {"auto", "none"}) == "auto" &&
             !memory_.rewrites;
  const FeatureMap::Epsilon epsilon = map_->epsilon();
  eps_ = spec.take("eps", epsilon.value);
  eps_mode_ =
      spec.take_choice("eps_mode", epsilon.clamp ? "clamp" : "add", {"add", "clamp"});
  if (spec.take("qk_bias", false))
    q_bias_ = ones(shape.heads, shape.dim), k_bias_ = ones(shape.heads, shape.dim);
  spec.finish();
  options_ = spec.options();
  if (!(eps_ >= 0))
    throw std::invalid_argument("linear: expected eps >= 0, got " +
                                std::to_string(eps_));
  if (divides_ && !map_->positive())
    throw std::invalid_argument(
        "linear: expected denominator=none with a map whose features may be negative, "
        "got denominator=auto; let a norm such as norm=rms_head follow instead");
}

Parameters LinearAttention::parameters() const {
  Parameters all = norm_.parameters();
  if (q_bias_.defined())
    all.insert(all.begin(), {{"q_bias", q_bias_}, {"k_bias", k_bias_}});
  return all;
}

at::Tensor LinearAttention::add_bias(const at::Tensor& x, Side side) const {
  if (!bias(side).defined()) return x;
  return x + bias(side).unsqueeze(1).to(x.scalar_type());  // [H, 1, D]
}

Features LinearAttention::features(const at::Tensor& x, Side side, const Placement& at,
                                   const at::Tensor& directions) const {
  return map_->features(x, side, directions, at);
}

OneTokenMemory LinearAttention::one_token(const Draw& draw, int64_t layer, int64_t d,
                                          int64_t horizon) const {
  OneTokenMemory memory;
  memory.map = map_->one_token(draw, layer, d, horizon);
  memory.divides = divides_;
  memory.eps = eps_, memory.clamp = eps_mode_ == "clamp";
  memory.forgets = memory_.forgets, memory.rewrites = memory_.rewrites;
  memory.convolution = memory_.convolution;
  memory.gates_output = memory_.gates_output;
  memory.norm = norm_.name(), memory.norm_eps = norm_.eps();
  memory.norm_gain = ops::numbers_of<float>(norm_.gain());
  memory.q_bias = ops::numbers_of<float>(q_bias_);
  memory.k_bias = ops::numbers_of<float>(k_bias_);
  return memory;
}

/// In num / den the scale of a query cancels and is left out, while that of a key
/// weighs it against other keys. Without a denominator both count.
LinearAttention::Call LinearAttention::call_of(const LinearInputs& inputs) const {
  if (!inputs.mapped && !fuses())
    throw std::invalid_argument(
        "linear: expected features of a map that the operator cannot fuse, got rows "
        "still to be mapped");
  Call call{divides_ ? inputs.q.x : scaled(inputs.q),
            divides_ ? inputs.k.x : scaled(inputs.k),
            {}};
  call.options.causal = inputs.causal;
  call.options.lengths = inputs.lengths, call.options.key_lengths = inputs.key_lengths;
  call.options.feature_map = inputs.mapped ? "none" : map_->fused();
  call.options.decay = inputs.decay;
  call.options.log_decay = inputs.log_decay;
  call.options.write_strength = inputs.write_strength;
  call.options.denominator = "none";
  call.options.eps = eps_, call.options.eps_mode = eps_mode_;
  if (memory_.rewrites)
    call.q = of_unit_length(call.q), call.k = of_unit_length(call.k);
  if (!divides_) return call;
  call.options.denominator = inputs.q_norm.x.defined() ? "separate" : "same";
  call.options.q_norm = inputs.q_norm.x, call.options.k_norm = inputs.k_norm.x;
  call.options.log_scale = inputs.k.log_scale;
  return call;
}

at::Tensor LinearAttention::normed(const at::Tensor& out,
                                   const LinearInputs& inputs) const {
  const bool left = !inputs.normed && norm_.before_layer().gain.defined();
  return left ? out : norm_.apply(out);
}

ops::LinearResult LinearAttention::attend(const LinearInputs& inputs,
                                          const ops::LinearState& from) const {
  const Call call = call_of(inputs);
  ops::LinearResult r =
      ops::linear_attention_stateful(call.q, call.k, inputs.v, from, call.options);
  r.out = normed(r.out, inputs);
  return r;
}

at::Tensor LinearAttention::attend(const LinearInputs& inputs) const {
  const Call call = call_of(inputs);
  return normed(ops::linear_attention(call.q, call.k, inputs.v, call.options), inputs);
}

ops::LinearResult LinearAttention::attend(const LinearInputs& inputs,
                                          const ops::Peers& peers) const {
  const Call call = call_of(inputs);
  ops::LinearResult r =
      linear_attention_together(peers, call.q, call.k, inputs.v, call.options);
  r.out = normed(r.out, inputs);
  return r;
}

/// Padding stays out because its keys get features of zero, which add nothing to num
/// and den.
at::Tensor LinearAttention::attend_by_lag(const LinearInputs& inputs,
                                          const at::Tensor& lag_bias) const {
  if (!divides_ || !inputs.mapped || inputs.causal || inputs.q_norm.x.defined())
    throw std::invalid_argument(
        "linear: expected full attention over features divided by their own sum with a "
        "bias by lag, got another kind");
  const at::Tensor& hidden =
      inputs.key_lengths.defined() ? inputs.key_lengths : inputs.lengths;
  const at::Tensor keys = without_padding(scaled_to_one(inputs.k), hidden);
  constexpr int64_t kFew = 64;
  const at::Tensor& q = inputs.q.x;
  const bool few = q.size(2) <= kFew && q.size(2) > 0 && keys.size(2) > 0;
  const at::Tensor out = few ? weigh_pairs(q, keys, inputs.v, lag_bias, eps_)
                             : ops::toeplitz_linear(q, keys, inputs.v, lag_bias, eps_);
  return normed(without_padding(out, inputs.lengths), inputs);
}

at::Tensor LinearAttention::step(const LinearInputs& inputs,
                                 ops::LinearState& state) const {
  Call call = call_of(inputs);
  const at::Tensor& q_norm = call.options.q_norm;
  const int64_t width = call.q.size(3);
  if (!state.s.defined()) {
    const int64_t b = call.q.size(0), h = call.q.size(1);
    const int64_t norm_width = q_norm.defined() ? q_norm.size(3) : width;
    state.s = at::zeros({b, h, width, inputs.v.size(3)}, call.q.options());
    state.z = at::zeros({b, h, divides_ ? norm_width : 0}, call.q.options());
    if (call.options.log_scale.defined())
      state.m =
          at::full({b, h}, -std::numeric_limits<double>::infinity(), call.q.options());
  }
  call.options.log_decay = without_length(call.options.log_decay);
  call.options.write_strength = without_length(call.options.write_strength);
  call.options.log_scale = without_length(call.options.log_scale);
  call.options.q_norm = without_length(call.options.q_norm);
  call.options.k_norm = without_length(call.options.k_norm);
  const at::Tensor out =
      ops::linear_attention_step(without_length(call.q), without_length(call.k),
                                 without_length(inputs.v), state, call.options);
  return normed(out.unsqueeze(2), inputs);
}

}  // namespace lagwise
