#include "bench/expert_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linear.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <stdexcept>

namespace lagwise::bench {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kNormEps = 1e-5;

/// y = r x, r = 1 / sqrt(mean x^2 + eps) over the last axis. With g the gradient of y
///
///     dx = r (g - y mean(g y))
///
/// which is four passes over the rows; autograd takes about nine for the same.
class UnitRms : public torch::autograd::Function<UnitRms> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    const Tensor length = at::linalg_vector_norm(x, 2, at::IntArrayRef{-1}, true);
    const Tensor r = length.square_().div_(double(x.size(-1))).add_(kNormEps).rsqrt_();
    const Tensor y = x * r;
    context->save_for_backward({y, r});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grad) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &y = saved[0], &r = saved[1];
    const Tensor along = (grad[0] * y).mean(-1, /*keepdim=*/true).neg_();
    return {at::addcmul(grad[0], y, along).mul_(r)};
  }
};

/// The linear map of the normed rows. (w u) W^T = u (W w)^T: the gain w of the norm of
/// rms is multiplied into the matrix.
Tensor linear_of_normed(const Tensor& x, const Tensor& gain, const Tensor& shift,
                        const Tensor& weight, const Tensor& bias) {
  if (shift.defined())
    return at::linear(at::layer_norm(x, {x.size(-1)}, gain, shift, kNormEps), weight,
                      bias);
  return at::linear(UnitRms::apply(x), weight * gain, bias);
}

void check_is_experts(const ModelConfig& config) {
  const bool same =
      config.model == "decoder_lm" && config.encoding == kExpertEncoding &&
      config.attention == kExpertAttention && config.pre_norm && config.dropout == 0 &&
      config.key_width() * config.heads == config.dim &&
      config.value_width() * config.heads == config.dim;
  if (!same)
    throw std::invalid_argument(
        "expert_model: expected a decoder_lm with pre_norm, no dropout, encoding " +
        std::string(kExpertEncoding) + " and attention " + kExpertAttention + ", got " +
        config.model + " with " + config.encoding + " and " + config.attention);
}

int64_t feed_forward_width(const ModelConfig& config) {
  return config.feed_forward > 0 ? config.feed_forward : 4 * config.dim;
}

/// The next multiple of a chunk, but for sequences within one chunk.
int64_t padded(int64_t n) {
  constexpr int64_t rows = ChunkedRope::kRowsOfChunk;
  return n <= rows ? n : (n + rows - 1) / rows * rows;
}

}  // namespace

ExpertModel::ExpertModel(const Model& ours)
    : config_(ours.config()), given_(ours.named_parameters()) {
  check_is_experts(config_);
  embed_ = copy("embed.weight");
  for (int64_t i = 0; i < config_.layers; ++i)
    blocks_.push_back(block("layers." + std::to_string(i) + "."));
  norm_ = norm("norm");
  if (!config_.tied) head_ = linear("head.out");
  given_.clear();
}

Tensor ExpertModel::add(const std::string& name, const Tensor& value) {
  parameters_.push_back({name, value.detach().clone().set_requires_grad(true)});
  return parameters_.back().tensor;
}

Tensor ExpertModel::copy(const std::string& name) { return add(name, given_[name]); }

ExpertModel::Linear ExpertModel::linear(const std::string& name) {
  return {copy(name + ".weight"), copy(name + ".bias")};
}

ExpertModel::Norm ExpertModel::norm(const std::string& name) {
  Norm made{copy(name + ".weight"), {}};
  if (config_.norm == "layer") made.bias = copy(name + ".bias");
  return made;
}

ExpertModel::ExpertBlock ExpertModel::block(const std::string& layer) {
  const c10::NoGradGuard no_graph;
  const std::string attn = layer + "attn.";
  const auto bias = [&](const std::string& side) {
    const Tensor of_heads = given_[attn + side + "_bias"];  // [H, D]
    return given_[attn + side + "_proj.bias"] + of_heads.reshape(-1);
  };
  ExpertBlock made;
  made.attn_norm = norm(layer + "attn_norm");
  made.qkv.weight =
      add(attn + "qkv_proj.weight",
          at::cat({given_[attn + "q_proj.weight"], given_[attn + "k_proj.weight"],
                   given_[attn + "v_proj.weight"]}));
  made.qkv.bias = add(attn + "qkv_proj.bias",
                      at::cat({bias("q"), bias("k"), given_[attn + "v_proj.bias"]}));
  made.gain = add(attn + "norm_gain", given_[attn + "norm_gain"].reshape(-1));
  made.out = linear(attn + "out_proj");
  made.ff_norm = norm(layer + "ff_norm");
  made.ff_in = linear(layer + "ff_in");
  made.ff_out = linear(layer + "ff_out");
  return made;
}

/// x [B N, C] -> the same. What is added is added in place: no gradient needs it.
Tensor ExpertModel::forward(const ExpertBlock& b, Tensor x) const {
  const Tensor qkv = linear_of_normed(x, b.attn_norm.weight, b.attn_norm.bias,
                                      b.qkv.weight, b.qkv.bias);
  const Tensor heads = UnitRms::apply(attention_->attend(qkv));  // [B, N, H, E]
  x = at::linear(heads.reshape(x.sizes()), b.out.weight * b.gain, b.out.bias).add_(x);
  const Tensor wide = linear_of_normed(x, b.ff_norm.weight, b.ff_norm.bias,
                                       b.ff_in.weight, b.ff_in.bias);
  return at::linear(at::gelu(wide), b.ff_out.weight, b.ff_out.bias).add_(x);
}

Tensor ExpertModel::loss(const Batch& batch) {
  const int64_t n = batch.tokens.size(1), all = padded(n);
  if (!attention_ || attention_->length() != all)
    attention_ = std::make_unique<ChunkedRope>(
        all, config_.heads, config_.dim / config_.heads, embed_.scalar_type());
  const auto whole_chunks = [&](const Tensor& x, int64_t with) {
    return (all == n ? x : at::constant_pad_nd(x, {0, all - n}, with)).reshape(-1);
  };
  // The table is scaled rather than the rows that are taken from it.
  Tensor x = at::embedding(embed_ * std::sqrt(double(config_.dim)),
                           whole_chunks(batch.tokens, 0));
  for (const ExpertBlock& b : blocks_) x = forward(b, x);
  const Tensor logits = linear_of_normed(
      x, norm_.weight, norm_.bias, config_.tied ? embed_ : head_.weight, head_.bias);
  return at::cross_entropy_loss(logits, whole_chunks(batch.targets, -1), /*weight=*/{},
                                at::Reduction::Mean, /*ignore_index=*/-1);
}

int64_t expert_step_bytes(const ModelConfig& config, int64_t batch, int64_t n) {
  const int64_t c = config.dim, rows = std::min(n, ChunkedRope::kRowsOfChunk);
  // Normed rows twice, q', k', v, the heads' output normed, and in the order of rows;
  // before and after GELU; the scores; where there are several chunks, states.
  const int64_t states = n > rows ? c * (c / config.heads) / rows : 0;
  const int64_t of_layer =
      7 * c + 2 * feed_forward_width(config) + config.heads * rows + states;
  const int64_t floats = batch * n * (config.layers * of_layer + config.vocabulary);
  return floats * static_cast<int64_t>(sizeof(float));
}

}  // namespace lagwise::bench
