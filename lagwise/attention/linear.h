#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string_view>

#include "lagwise/attention/feature_map.h"
#include "lagwise/attention/memory_options.h"
#include "lagwise/attention/output_norm.h"
#include "lagwise/ops/encoded.h"
#include "lagwise/ops/head_shape.h"
#include "lagwise/ops/linear_attention.h"
#include "lagwise/ops/parameters.h"
#include "lagwise/ops/peers.h"

namespace lagwise {

/// What one call of linear attention attends over.
struct LinearInputs {
  Features q = {};        ///< [B, H, N, D']
  Features k = {};        ///< [B, H, M, D']
  at::Tensor v = {};      ///< [B, H, M, E]
  Features q_norm = {};   ///< of a separate denominator: features without
  Features k_norm = {};   ///<   positions in them
  at::Tensor decay = {};  ///< [H] or [H, D'], as an encoding hands it over
  at::Tensor log_decay = {}, write_strength = {};  ///< [B, H, M]: gates, of attention
                                                   ///<   whose memory() has them
  at::Tensor lengths = {}, key_lengths = {};       ///< [B], as in ops::LinearOptions
  bool causal = true;
  bool normed = true;  ///< false: what output_norm() has for a layer is left to it
  bool mapped = true;  ///< false: q, k and the norms are still without the feature map,
};                     ///<   which the operator applies itself; only where `fuses()`

/// Linear attention of one layer, built from text:
///
///     linear:map=elu1
///     linear:map=favor:features=256;norms=sqrt_d
///     linear:map=none,denominator=none,norm=rms_head,qk_bias=true
///
///     map (elu1)          a feature map; ';' between its options
///     denominator (auto)  auto: from the norm features where they are given, else
///                         from the features themselves; none: no division
///     eps, eps_mode       as the feature map asks for, unless given
///     norm (none)         a norm of the output: output_norm.h; norm_gain, norm_eps
///     qk_bias (false)     a learned bias on queries and keys, 1 at first: gives the
///                         expected kernel of an encoding a part that is not zero-mean
///     forget, write, ...  memory_options.h
///
/// With write=delta nothing is divided, and queries and keys get length 1 in the form
/// in which the state sees them: only then does a write of strength b in [0, 2] replace
/// what its key recalls and never enlarge the rest.
///
/// How a layer uses it, for any encoding, by the stage the encoding acts at:
///
///     q = add_bias(q, query), k = add_bias(k, key)
///     before_map   encode q and k,      then features() of both
///     after_map    features() of both,  then encode their x; the features before that
///                  are q_norm, k_norm where the encoding asks for them
///     attend(...)
///
/// It knows no encoding. A denominator from signed features is refused when built.
class LinearAttention {
 public:
  using Side = FeatureMap::Side;

  /// std::invalid_argument says what was wrong and lists what is legal.
  LinearAttention(std::string_view text, const HeadShape& shape);

  const FeatureMap& map() const { return *map_; }

  /// The options of the text, with their defaults.
  const std::vector<Spec::Option>& options() const { return options_; }

  const MemoryOptions& memory() const { return memory_; }
  const OutputNorm& output_norm() const { return norm_; }
  bool divides() const { return divides_; }
  bool fuses() const { return !map_->fused().empty(); }

  /// q_bias, k_bias [H, D] and norm_gain [H, E], where they were asked for.
  Parameters parameters() const;

  /// [H, D], or undefined.
  const at::Tensor& bias(Side side) const {
    return side == Side::query ? q_bias_ : k_bias_;
  }

  /// x [B, H, N, D] with the bias of its side, if there is one.
  at::Tensor add_bias(const at::Tensor& x, Side side) const;

  /// The features of x; `directions` from map().directions(...), where it has any.
  Features features(const at::Tensor& x, Side side, const Placement& at,
                    const at::Tensor& directions = {}) const;

  /// How one row of width D is remembered, as data (core/one_token.h).
  OneTokenMemory one_token(const Draw& draw, int64_t layer, int64_t d,
                           int64_t horizon) const;

  /// The result after the output norm, [B, H, N, E].
  at::Tensor attend(const LinearInputs& inputs) const;

  /// Full attention with a bias by lag [1|H, N+M-1], in O(N log N) by FFT
  /// (ops/toeplitz_linear.h), for few queries pair by pair. A bias of -inf hides a lag:
  /// that is how it is made causal. It divides, so `divides()` must hold, and takes
  /// features: `mapped`. Without a state: each call needs all keys.
  at::Tensor attend_by_lag(const LinearInputs& inputs,
                           const at::Tensor& lag_bias) const;

  /// The same as attend, beginning from a state and handing on the next.
  ops::LinearResult attend(const LinearInputs& inputs,
                           const ops::LinearState& from) const;

  /// The same where each of the peers has some of the rows (attention/shared_state.h).
  ops::LinearResult attend(const LinearInputs& inputs, const ops::Peers& peers) const;

  /// One token, N = M = 1: [B, H, 1, E]. Advances `state` in place, and makes it
  /// where it is undefined. No gradient.
  at::Tensor step(const LinearInputs& inputs, ops::LinearState& state) const;

 private:
  struct Call {
    at::Tensor q, k;
    ops::LinearOptions options;
  };
  Call call_of(const LinearInputs& inputs) const;
  at::Tensor normed(const at::Tensor& out, const LinearInputs& inputs) const;

  std::unique_ptr<FeatureMap> map_;
  bool divides_ = true;
  double eps_ = 0;
  std::string eps_mode_;
  OutputNorm norm_;
  MemoryOptions memory_;
  at::Tensor q_bias_, k_bias_;  // [H, D]
  std::vector<Spec::Option> options_;

  LinearAttention(Spec spec, const HeadShape& shape);
};

}  // namespace lagwise
