#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>

#include "lagwise/nn/linear_layer.h"
#include "lagwise/nn/mixer.h"

namespace lagwise::nn {

/// What an attention layer is made of.
struct AttentionConfig {
  int64_t dim = 64, heads = 4;  ///< C, H; D = E = C / H
  std::string attention;        ///< "linear:map=elu1", "exact"
  std::string encoding_text;    ///< for messages
  int64_t layer = 0, layers = 1;
  bool causal = true;
};

/// Projects rows to heads, mixes them along the sequence, and projects back.
///
/// Parameters  q_proj, k_proj, v_proj, out_proj; those of the attention beside them;
///             those of the encoding in this layer under pos. q_proj is drawn so that
///             scores begin with deviation 1, whatever the encoding scales them by.
class MultiHeadAttention : public torch::nn::Module {
 public:
  MultiHeadAttention(const AttentionConfig& config, std::shared_ptr<Encoding> encoding,
                     Initial& initial);

  /// Queries x [B, N, C] over rows y [B, M, C] -> [B, N, C]; self attention: x = y.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& y, const Pass& pass) const;

  std::unique_ptr<MixerState> start(int64_t batch) const {
    return mixer_->start(batch);
  }
  at::Tensor extend(MixerState& state, const at::Tensor& x, const Pass& pass) const;

  /// Cross attention while decoding: `listen` takes y once, `ask` each further x.
  std::unique_ptr<MixerState> listen(const at::Tensor& y, const Pass& pass) const;
  at::Tensor ask(const MixerState& heard, const at::Tensor& x, const Pass& pass) const;

 private:
  at::Tensor split(const at::Tensor& x) const;  // [B, N, C] -> [B, H, N, D]
  at::Tensor join(const at::Tensor& x) const;   // and back, through out_proj

  int64_t heads_;
  std::shared_ptr<LinearLayer> q_proj_, k_proj_, v_proj_, out_proj_;
  std::unique_ptr<Mixer> mixer_;
};

}  // namespace lagwise::nn
