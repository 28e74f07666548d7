#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/chunked_rope.h"
#include "lagwise/models/model.h"
#include "lagwise/train/adamw.h"

namespace lagwise::bench {

/// What ExpertModel computes, as our models spell it.
inline constexpr const char* kExpertEncoding = "rope:layout=interleaved,decay=alibi";
inline constexpr const char* kExpertAttention =
    "linear:map=none,denominator=none,norm=rms_head,qk_bias=true";

/// A language model with RoPE and a fixed decay as an expert writes it in plain torch,
/// without any operator of this library: the baseline `torch_chunked` of
/// `lagwise bench train`. It computes what our decoder_lm with the texts above
/// computes, but saves what algebra saves without changing it:
///
///     one product for queries, keys and values, one bias where ours has two to add
///     gains of norms are multiplied into the matrix behind them, which has fewer
///       numbers than the rows have
///     x / rms(x) has its gradient by hand: half the passes over memory
///     attention in chunks of 64 (chunked_rope.h)
///
/// Tokens are padded to whole chunks; the model is causal, so nothing changes.
class ExpertModel {
 public:
  /// Begins from copies of the parameters of `ours`. std::invalid_argument if that is
  /// another model than the one above.
  explicit ExpertModel(const Model& ours);

  /// The mean cross entropy of the next tokens; targets of -1 do not count.
  at::Tensor loss(const Batch& batch);

  /// embed.weight, layers.<i>.{attn_norm, ff_norm}.{weight, bias},
  /// layers.<i>.attn.{qkv_proj, out_proj}.{weight, bias}, layers.<i>.attn.norm_gain [C],
  /// layers.<i>.{ff_in, ff_out}.{weight, bias}, norm.{weight, bias}, and
  /// head.out.{weight, bias} if the head is not tied.
  const std::vector<NamedTensor>& parameters() const { return parameters_; }

 private:
  struct Linear {
    at::Tensor weight, bias;
  };
  struct Norm {
    at::Tensor weight, bias;  // no bias: rms
  };
  struct ExpertBlock {
    Norm attn_norm, ff_norm;
    Linear qkv, out, ff_in, ff_out;
    at::Tensor gain;  // of each head's output, [C]
  };

  at::Tensor add(const std::string& name, const at::Tensor& value);
  at::Tensor copy(const std::string& name);
  Linear linear(const std::string& name);
  Norm norm(const std::string& name);
  ExpertBlock block(const std::string& layer);
  at::Tensor forward(const ExpertBlock& block, at::Tensor x) const;

  ModelConfig config_;
  torch::OrderedDict<std::string, at::Tensor> given_;  // of the model it copies
  std::vector<NamedTensor> parameters_;
  at::Tensor embed_;
  std::vector<ExpertBlock> blocks_;
  Norm norm_;
  Linear head_;
  std::unique_ptr<ChunkedRope> attention_;  // for the length seen last
};

/// Bytes that a training step of that model holds at once, at least: what autograd
/// keeps of every layer.
int64_t expert_step_bytes(const ModelConfig& config, int64_t batch, int64_t n);

}  // namespace lagwise::bench
