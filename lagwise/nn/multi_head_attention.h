#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>

#include "lagwise/nn/gates.h"
#include "lagwise/nn/linear_layer.h"
#include "lagwise/nn/mixer.h"
#include "lagwise/nn/short_convolution.h"

namespace lagwise::nn {

/// What an attention layer is made of.
struct AttentionConfig {
  int64_t dim = 64, heads = 4;         ///< C, H
  int64_t key_dim = 0, value_dim = 0;  ///< D, E of a head; 0: C / H
  std::string attention;               ///< "linear:map=elu1", "exact"
  std::string encoding_text;           ///< for messages
  int64_t layer = 0, layers = 1;
  bool causal = true;
};

/// What attention of a layer keeps of the past of a batch.
struct AttentionState : MixerState {
  std::unique_ptr<MixerState> mixer;
  at::Tensor recent_q, recent_k, recent_v;  ///< [B, K - 1, .] of the convolutions
  int64_t bytes() const override;
  void reorder(const at::Tensor& order) override;
};

/// Projects rows to heads, mixes them along the sequence, and projects back.
///
///     q, k, v = projections of x (with conv: then each convolved along the sequence)
///     l, b    = gates of x, where attention asks for them
///     y       = out_proj(heads),  with gate_output: out_proj(heads * SiLU(gate_proj(x)))
///
/// The gate of the output is that of RetNet (arXiv:2307.08621) and Gated DeltaNet
/// (arXiv:2412.06464); it stands after the norm of the heads.
///
/// Parameters  q_proj, k_proj, v_proj, out_proj; those of the attention beside them;
///             those of the encoding in this layer under pos. q_proj is drawn so that
///             scores begin with deviation 1, whatever the encoding scales them by.
///             Where asked for: forget, write, q_conv, k_conv, v_conv, gate_proj.
class MultiHeadAttention : public torch::nn::Module {
 public:
  MultiHeadAttention(const AttentionConfig& config,
                     const std::shared_ptr<Encoding>& encoding, Initial& initial);

  /// Queries x [B, N, C] over rows y [B, M, C] -> [B, N, C]; self attention: x = y.
  /// Here and below x is normed first, if `norm` has a gain (and so is y, if it is x), and
  /// the result is added to `start` [B, N, C], if that is defined.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& y, const Pass& pass,
                     const ops::InputNorm& norm = {},
                     const at::Tensor& start = {}) const;

  /// As Mixer::one_token.
  OneTokenLayer one_token(const Draw& draw, int64_t horizon) const {
    return mixer_->one_token(draw, horizon);
  }

  /// As Mixer::draws.
  bool draws() const { return mixer_->draws(); }

  std::unique_ptr<AttentionState> start(int64_t batch) const;
  at::Tensor extend(AttentionState& state, const at::Tensor& x, const Pass& pass,
                    const ops::InputNorm& norm = {},
                    const at::Tensor& start = {}) const;

  /// Cross attention while decoding: `listen` takes y once, `ask` each further x.
  std::unique_ptr<MixerState> listen(const at::Tensor& y, const Pass& pass) const;
  at::Tensor ask(const MixerState& heard, const at::Tensor& x, const Pass& pass,
                 const ops::InputNorm& norm = {}, const at::Tensor& start = {}) const;

 private:
  struct Projected {
    at::Tensor q, k, v;  // [B, N, H W]
    at::Tensor x;        // what was projected, to go on with past it
  };
  Projected project(const at::Tensor& x, const at::Tensor& y,
                    const ops::InputNorm& norm) const;
  ops::DenseWeights weights_of(const LinearLayer& projection,
                               const at::Tensor& row_bias) const;
  bool gates() const { return forget_ || write_ || gate_proj_; }
  void make_projections(const AttentionConfig& config, const HeadShape& shape,
                        Initial& initial);
  void make_memory(const AttentionConfig& config, const HeadShape& shape,
                   Initial& initial);
  HeadRows rows_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                   const at::Tensor& y) const;
  at::Tensor split(const at::Tensor& x) const;  // [B, N, H W] -> [B, H, N, W]
  /// Heads [B, H, N, E] of the input x and back to rows, through out_proj.
  at::Tensor join(const at::Tensor& heads, const at::Tensor& x,
                  const at::Tensor& start) const;

  int64_t heads_;
  std::shared_ptr<LinearLayer> q_proj_, k_proj_, v_proj_, out_proj_, gate_proj_;
  std::shared_ptr<ShortConvolution> q_conv_, k_conv_, v_conv_;
  std::shared_ptr<ForgetGate> forget_;
  std::shared_ptr<WriteGate> write_;
  std::unique_ptr<Mixer> mixer_;
};

}  // namespace lagwise::nn
