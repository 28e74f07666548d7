#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>

#include "lagwise/nn/multi_head_attention.h"
#include "lagwise/nn/norm.h"

namespace lagwise::nn {

struct BlockConfig {
  AttentionConfig self;
  int64_t feed_forward = 256;
  std::string norm = "rms";
  bool pre_norm = true;
};

/// What a block remembers while decoding.
struct BlockState {
  std::unique_ptr<AttentionState> self;
  std::unique_ptr<MixerState> heard;
};

/// One layer of a transformer: self attention, perhaps cross attention, feed-forward,
/// each added to the stream x.
///
///     pre-norm    x <- x + f(norm(x))
///     post-norm   x <- norm(x + f(x))
class Block : public torch::nn::Module {
 public:
  /// With `cross`, the block also has cross attention, made by that config.
  Block(const BlockConfig& config, std::shared_ptr<Encoding> encoding, Initial& initial,
        const AttentionConfig* cross = nullptr,
        std::shared_ptr<Encoding> cross_encoding = nullptr);

  at::Tensor forward(at::Tensor x, const Pass& pass, const at::Tensor& other = {},
                     const Pass* cross_pass = nullptr);

  /// As Mixer::one_token.
  OneTokenLayer one_token(const Draw& draw, int64_t horizon) const {
    return attn_->one_token(draw, horizon);
  }

  BlockState start(int64_t batch, const at::Tensor& other = {},
                   const Pass* cross_pass = nullptr) const;
  at::Tensor extend(BlockState& state, at::Tensor x, const Pass& pass,
                    const Pass* cross_pass = nullptr);

 private:
  /// f(norm(y)) + start; an undefined start is 0.
  using Inner = std::function<at::Tensor(
      const at::Tensor& y, const ops::InputNorm& norm, const at::Tensor& start)>;
  at::Tensor add(const at::Tensor& x, const std::shared_ptr<Norm>& norm,
                 const Pass& pass, int64_t which, const Inner& inner) const;
  at::Tensor feed_forward(const at::Tensor& y, const ops::InputNorm& norm,
                          const at::Tensor& start) const;

  bool pre_norm_;
  int64_t place_;  // of its dropout
  std::shared_ptr<MultiHeadAttention> attn_, cross_;
  std::shared_ptr<Norm> attn_norm_, cross_norm_, ff_norm_;
  std::shared_ptr<LinearLayer> ff_in_, ff_out_;
};

}  // namespace lagwise::nn
