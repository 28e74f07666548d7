#include "lagwise/nn/multi_head_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/silu.h>

#include <cmath>
#include <stdexcept>

#include "lagwise/nn/parameters.h"
#include "lagwise/ops/peer_rows.h"
#include "lagwise/ops/rms_norm.h"

namespace lagwise::nn {

int64_t AttentionState::bytes() const {
  size_t recent = 0;
  for (const at::Tensor* rows : {&recent_q, &recent_k, &recent_v})
    if (rows->defined()) recent += rows->nbytes();
  return static_cast<int64_t>(recent) + mixer->bytes();
}

void AttentionState::reorder(const at::Tensor& order) {
  for (at::Tensor* rows : {&recent_q, &recent_k, &recent_v})
    if (rows->defined()) *rows = rows->index_select(0, order);
  mixer->reorder(order);
}

MultiHeadAttention::MultiHeadAttention(const AttentionConfig& config,
                                       const std::shared_ptr<Encoding>& encoding,
                                       Initial& initial)
    : heads_(config.heads) {
  const Layer layer{config.layer, config.layers,
                    encoding->layer(config.layer, config.layers)};
  const int64_t even = config.dim / config.heads;
  const HeadShape shape{.heads = config.heads,
                        .dim = config.key_dim > 0 ? config.key_dim : even,
                        .model_dim = config.dim,
                        .value_dim = config.value_dim > 0 ? config.value_dim : even};
  const MixerPlace place{shape, config.layer, config.layers, config.causal};
  mixer_ = make_mixer(config.attention, place, config.encoding_text, encoding, layer);
  make_projections(config, shape, initial);
  if (!layer.own.empty()) register_module("pos", std::make_shared<Holder>(layer.own));
  for (const auto& [name, tensor] : mixer_->parameters())
    register_parameter(name, tensor, tensor.requires_grad());
  make_memory(config, shape, initial);
}

void MultiHeadAttention::make_projections(const AttentionConfig& config,
                                          const HeadShape& shape, Initial& initial) {
  const int64_t keys = shape.heads * shape.dim, values = shape.heads * shape.value_dim;
  const auto projection = [&](const char* name, int64_t in, int64_t out, double gain) {
    return register_module(name, std::make_shared<LinearLayer>(in, out, initial, gain));
  };
  q_proj_ = projection("q_proj", config.dim, keys, mixer_->query_gain());
  k_proj_ = projection("k_proj", config.dim, keys, 1.0);
  v_proj_ = projection("v_proj", config.dim, values, 1.0);
  // Each layer adds two terms to its input, so the sum grows with the number of layers;
  // smaller initial weights keep its size.
  out_proj_ = projection("out_proj", values, config.dim,
                         1.0 / std::sqrt(2.0 * static_cast<double>(config.layers)));
}

void MultiHeadAttention::make_memory(const AttentionConfig& config,
                                     const HeadShape& shape, Initial& initial) {
  const MemoryOptions memory = mixer_->memory();
  const int64_t keys = shape.heads * shape.dim, values = shape.heads * shape.value_dim;
  if (memory.forgets)
    forget_ = register_module(
        "forget", std::make_shared<ForgetGate>(config.dim, shape.heads, memory));
  if (memory.rewrites)
    write_ =
        register_module("write", std::make_shared<WriteGate>(config.dim, shape.heads));
  const auto convolution = [&](const char* name, int64_t width) {
    return register_module(
        name, std::make_shared<ShortConvolution>(memory.convolution, width));
  };
  if (memory.convolution > 0) {
    q_conv_ = convolution("q_conv", keys);
    k_conv_ = convolution("k_conv", keys);
    v_conv_ = convolution("v_conv", values);
  }
  if (memory.gates_output)
    gate_proj_ = register_module(
        "gate_proj", std::make_shared<LinearLayer>(config.dim, values, initial));
}

at::Tensor MultiHeadAttention::split(const at::Tensor& x) const {
  return x.view({x.size(0), x.size(1), heads_, x.size(2) / heads_}).transpose(1, 2);
}

at::Tensor MultiHeadAttention::join(const at::Tensor& heads, const at::Tensor& x,
                                    const at::Tensor& start) const {
  at::Tensor rows = heads.transpose(1, 2).reshape(
      {heads.size(0), heads.size(2), heads.size(1) * heads.size(3)});
  ops::InputNorm norm = mixer_->head_norm();
  if (norm.gain.defined()) norm.gain = norm.gain.to(rows.scalar_type());
  const ops::DenseWeights out = out_proj_->weights();
  if (!gate_proj_) return ops::dense(rows, out.weight, out.bias, start, norm);
  if (norm.gain.defined())  // before the gate
    rows = ops::rms_norm(rows.view(heads.transpose(1, 2).sizes()), norm.gain, norm.eps)
               .view(rows.sizes());
  rows = rows * at::silu(gate_proj_->forward(x));
  return ops::dense(rows, out.weight, out.bias, start);
}

/// Projected and convolved rows by head, with the gates of the input y of the keys.
HeadRows MultiHeadAttention::rows_of(const at::Tensor& q, const at::Tensor& k,
                                     const at::Tensor& v, const at::Tensor& y) const {
  const RowBias bias = mixer_->row_bias();
  const auto with = [&](const at::Tensor& rows, const at::Tensor& add) {
    return q_conv_ && add.defined() ? rows + add.flatten() : rows;
  };
  HeadRows rows{split(with(q, bias.q)), split(with(k, bias.k)), split(v)};
  if (forget_) rows.log_decay = forget_->forward(y);
  if (write_) rows.write_strength = write_->forward(y);
  return rows;
}

/// Those of a projection. What the mixer wants added to its rows joins the bias, unless
/// they are convolved first.
ops::DenseWeights MultiHeadAttention::weights_of(const LinearLayer& projection,
                                                 const at::Tensor& row_bias) const {
  ops::DenseWeights weights = projection.weights();
  if (row_bias.defined() && !q_conv_)
    weights.bias = weights.bias + row_bias.flatten().to(weights.bias.scalar_type());
  return weights;
}

/// Queries of x, keys and values of y: of one input they are one step of the graph.
MultiHeadAttention::Projected MultiHeadAttention::project(
    const at::Tensor& x, const at::Tensor& y, const ops::InputNorm& norm) const {
  const RowBias bias = mixer_->row_bias();
  const auto query = weights_of(*q_proj_, bias.q), key = weights_of(*k_proj_, bias.k);
  const ops::DenseWeights value = v_proj_->weights();
  if (!x.is_same(y)) {
    const auto heard = ops::dense_each(y, {key, value}).y;
    const auto asking = ops::dense_each(x, {query}, norm);
    return {asking.y[0], heard[0], heard[1], asking.x};
  }
  const auto all = ops::dense_each(x, {query, key, value}, norm);
  return {all.y[0], all.y[1], all.y[2], all.x};
}

at::Tensor MultiHeadAttention::forward(const at::Tensor& x, const at::Tensor& y,
                                       const Pass& pass, const ops::InputNorm& norm,
                                       const at::Tensor& start) const {
  if (gates() && norm.gain.defined()) {  // which read the normed rows too
    const at::Tensor rows = ops::rms_norm(x, norm.gain, norm.eps);
    return forward(rows, x.is_same(y) ? rows : y, pass, {}, start);
  }
  const auto convolved = [&](const std::shared_ptr<ShortConvolution>& convolution,
                             const at::Tensor& rows) {
    if (!convolution) return rows;
    if (pass.peers == nullptr) return convolution->forward(rows);
    return convolution->forward(
        rows, ops::rows_before(*pass.peers, pass.shards, rows, convolution->reach()));
  };
  const auto [q, k, v, same_x] = project(x, y, norm);
  // One after another: peers meet in the same order.
  const at::Tensor q_rows = convolved(q_conv_, q), k_rows = convolved(k_conv_, k),
                   v_rows = convolved(v_conv_, v);
  const HeadRows rows = rows_of(q_rows, k_rows, v_rows, y);
  return join(mixer_->mix(rows, pass), x, start.is_same(x) ? same_x : start);
}

std::unique_ptr<AttentionState> MultiHeadAttention::start(int64_t batch) const {
  auto state = std::make_unique<AttentionState>();
  state->mixer = mixer_->start(batch);
  return state;
}

at::Tensor MultiHeadAttention::extend(AttentionState& state, const at::Tensor& x,
                                      const Pass& pass, const ops::InputNorm& norm,
                                      const at::Tensor& start) const {
  if (gates() && norm.gain.defined())
    return extend(state, ops::rms_norm(x, norm.gain, norm.eps), pass, {}, start);
  const auto convolved = [&](const std::shared_ptr<ShortConvolution>& convolution,
                             const at::Tensor& rows, at::Tensor& recent) {
    return convolution ? convolution->extend(recent, rows, pass.lengths) : rows;
  };
  const auto [q, k, v, same_x] = project(x, x, norm);
  const HeadRows rows = rows_of(convolved(q_conv_, q, state.recent_q),
                                convolved(k_conv_, k, state.recent_k),
                                convolved(v_conv_, v, state.recent_v), x);
  return join(mixer_->extend(*state.mixer, rows, pass), x,
              start.is_same(x) ? same_x : start);
}

std::unique_ptr<MixerState> MultiHeadAttention::listen(const at::Tensor& y,
                                                       const Pass& pass) const {
  const auto heard = ops::dense_each(
      y, {weights_of(*k_proj_, mixer_->row_bias().k), v_proj_->weights()});
  return mixer_->listen(split(heard.y[0]), split(heard.y[1]), pass);
}

at::Tensor MultiHeadAttention::ask(const MixerState& heard, const at::Tensor& x,
                                   const Pass& pass, const ops::InputNorm& norm,
                                   const at::Tensor& start) const {
  if (gates() && norm.gain.defined())
    return ask(heard, ops::rms_norm(x, norm.gain, norm.eps), pass, {}, start);
  const ops::DenseWeights query = weights_of(*q_proj_, mixer_->row_bias().q);
  const at::Tensor q = ops::dense_each(x, {query}, norm).y[0];
  return join(mixer_->ask(heard, split(q), pass), x, start);
}

}  // namespace lagwise::nn
