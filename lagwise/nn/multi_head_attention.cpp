#include "lagwise/nn/multi_head_attention.h"

#include <cmath>
#include <stdexcept>

namespace lagwise::nn {

MultiHeadAttention::MultiHeadAttention(const AttentionConfig& config,
                                       std::shared_ptr<Encoding> encoding,
                                       Initial& initial)
    : heads_(config.heads) {
  const Layer layer{config.layer, config.layers,
                    encoding->layer(config.layer, config.layers)};
  const HeadShape shape{
      .heads = config.heads, .dim = config.dim / config.heads, .model_dim = config.dim};
  const MixerPlace place{shape, config.layer, config.layers, config.causal};
  mixer_ = make_mixer(config.attention, place, config.encoding_text, encoding, layer);
  const auto projection = [&](const char* name, double gain) {
    return register_module(
        name, std::make_shared<LinearLayer>(config.dim, config.dim, initial, gain));
  };
  q_proj_ = projection("q_proj", mixer_->query_gain());
  k_proj_ = projection("k_proj", 1.0);
  v_proj_ = projection("v_proj", 1.0);
  // Each layer adds two terms to its input, so the sum grows with the number of layers;
  // smaller initial weights keep its size.
  out_proj_ =
      projection("out_proj", 1.0 / std::sqrt(2.0 * static_cast<double>(config.layers)));
  if (!layer.own.empty()) register_module("pos", std::make_shared<Holder>(layer.own));
  for (const auto& [name, tensor] : mixer_->parameters())
    register_parameter(name, tensor, tensor.requires_grad());
}

at::Tensor MultiHeadAttention::split(const at::Tensor& x) const {
  return x.view({x.size(0), x.size(1), heads_, x.size(2) / heads_}).transpose(1, 2);
}

at::Tensor MultiHeadAttention::join(const at::Tensor& x) const {
  return out_proj_->forward(
      x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)}));
}

at::Tensor MultiHeadAttention::forward(const at::Tensor& x, const at::Tensor& y,
                                       const Pass& pass) const {
  return join(mixer_->mix(split(q_proj_->forward(x)), split(k_proj_->forward(y)),
                          split(v_proj_->forward(y)), pass));
}

at::Tensor MultiHeadAttention::extend(MixerState& state, const at::Tensor& x,
                                      const Pass& pass) const {
  return join(mixer_->extend(state, split(q_proj_->forward(x)),
                             split(k_proj_->forward(x)), split(v_proj_->forward(x)),
                             pass));
}

std::unique_ptr<MixerState> MultiHeadAttention::listen(const at::Tensor& y,
                                                       const Pass& pass) const {
  return mixer_->listen(split(k_proj_->forward(y)), split(v_proj_->forward(y)), pass);
}

at::Tensor MultiHeadAttention::ask(const MixerState& heard, const at::Tensor& x,
                                   const Pass& pass) const {
  return join(mixer_->ask(heard, split(q_proj_->forward(x)), pass));
}

}  // namespace lagwise::nn
