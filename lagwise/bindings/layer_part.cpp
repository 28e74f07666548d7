// A layer of attention: rows in and rows out, with projections, gates and convolutions
// as the text of the attention asks for them (nn/multi_head_attention.h).
//
//     x [B, N, C], y [B, M, C] (absent: x)      queries of x over rows of y
//     lengths, key_lengths [B]                  padding at the end
//     s, z, m, recent_q, recent_k, recent_v     with "state": what came before
//     -> [B, N, C], and with "state" the next of these six; an empty tensor is none

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <stdexcept>

#include "lagwise/bindings/part.h"
#include "lagwise/bindings/placed_encoding.h"
#include "lagwise/nn/multi_head_attention.h"
#include "lagwise/nn/parameters.h"

namespace lagwise::bindings {
namespace {

class LayerPart : public Part {
 public:
  explicit LayerPart(const Json& config)
      : placed_(config), keeps_state_(entry(config, "state", false)) {
    nn::AttentionConfig made;
    made.dim = placed_.shape.model_width(), made.heads = placed_.shape.heads;
    made.key_dim = placed_.shape.dim, made.value_dim = placed_.shape.value_width();
    made.attention = placed_.attention, made.encoding_text = placed_.text;
    made.layer = placed_.layer.index, made.layers = placed_.layer.count;
    made.causal = placed_.causal;
    nn::Initial initial{placed_.shape.seed};
    layer_ = std::make_shared<nn::MultiHeadAttention>(made, placed_.encoding, initial);
  }

  /// Those of the layer; what its encoding shares with other layers as pos.* too.
  Parameters parameters() const override {
    Parameters all;
    for (const auto& own : layer_->named_parameters())
      all.emplace_back(own.key(), own.value());
    for (const auto& [name, tensor] : placed_.encoding->shared())
      all.emplace_back("pos." + name, tensor);
    return all;
  }

  std::vector<at::Tensor> call(const Inputs& inputs) override {
    const at::Tensor x = inputs.need("x"), other = inputs["y"];
    const at::Tensor& y = other.defined() ? other : x;
    const nn::Pass pass = placed_.pass(inputs, x.size(1), y.size(1));
    if (!keeps_state_) return {layer_->forward(x, y, pass)};
    return extend(inputs, x, pass);
  }

  Json facts() const override {
    Json facts = placed_.facts();
    facts["draws"] = layer_->draws();
    facts["state"] = state_sizes();
    return facts;
  }

 private:
  static constexpr const char* kNames[] = {"s",        "z",        "m",
                                           "recent_q", "recent_k", "recent_v"};

  std::vector<at::Tensor*> tensors_of(nn::AttentionState& state) const {
    ops::LinearState* linear = state.mixer->constant_size();
    if (linear == nullptr)
      throw std::invalid_argument(
          "expected attention whose state has a constant size, got " +
          placed_.attention + " with " + placed_.text);
    return {&linear->s,      &linear->z,      &linear->m,
            &state.recent_q, &state.recent_k, &state.recent_v};
  }

  std::vector<at::Tensor> extend(const Inputs& inputs, const at::Tensor& x,
                                 const nn::Pass& pass) const {
    const auto state = layer_->start(x.size(0));
    const std::vector<at::Tensor*> kept = tensors_of(*state);
    for (size_t i = 0; i < kept.size(); ++i)
      if (const at::Tensor from = inputs[kNames[i]]; from.defined() && from.dim() > 1)
        *kept[i] = from.clone();  // a step writes into its state
    std::vector<at::Tensor> results = {layer_->extend(*state, x, pass)};
    if (at::Tensor& m = *kept[2]; m.defined() && m.numel() == 0) m = at::Tensor();
    for (const at::Tensor* one : kept)
      results.push_back(one->defined() ? *one : at::empty({0}, x.options()));
    return results;
  }

  /// Of one sequence; null where there is no state of constant size.
  Json state_sizes() const {
    const at::NoGradGuard no_graph;
    if (!placed_.causal || layer_->start(1)->mixer->constant_size() == nullptr)
      return nullptr;
    const at::Tensor x = at::zeros({1, 1, placed_.shape.model_width()}, at::kFloat);
    const Inputs nothing({}, {});
    Json sizes = Json::array();
    for (const at::Tensor& one : extend(nothing, x, placed_.pass(nothing, 1, 1)))
      sizes.push_back(one.sizes().vec());
    sizes.erase(sizes.begin());
    return sizes;
  }

  PlacedEncoding placed_;
  bool keeps_state_;
  std::shared_ptr<nn::MultiHeadAttention> layer_;
};

const RegisterPart layer_part_registered({
    .name = "layer",
    .make = [](const Json& config) -> std::unique_ptr<Part> {
      return std::make_unique<LayerPart>(config);
    },
});

}  // namespace
}  // namespace lagwise::bindings
