#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "lagwise/core/spec.h"
#include "lagwise/ops/dense.h"
#include "lagwise/ops/parameters.h"

namespace lagwise {

/// A norm of attention's output, for attention without a denominator: there outputs
/// grow with the number of keys, and the norm takes their size out again.
///
///     none          o
///     rms_head      o / sqrt(mean(o^2) + eps), over the E numbers of one head
///     layer_concat  (o - mean(o)) / sqrt(var(o) + eps), over the H E of all heads
///
/// each times a gain, if asked for. A row of zeros stays zeros.
class OutputNorm {
 public:
  /// Takes norm=none|rms_head|layer_concat, norm_gain (true) and norm_eps (1e-5).
  OutputNorm(Spec& spec, int64_t heads, int64_t value_dim);

  const std::string& name() const { return name_; }
  double eps() const { return eps_; }
  const at::Tensor& gain() const { return gain_; }  ///< [H, E], undefined: none

  /// [B, H, N, E] -> [B, H, N, E]
  at::Tensor apply(const at::Tensor& out) const;

  /// For a dense layer that norms the heads it reads itself: rms_head with a gain can be
  /// left to it. Without a gain where it cannot.
  ops::InputNorm before_layer() const;

  /// norm_gain [H, E], if there is one.
  Parameters parameters() const;

 private:
  std::string name_;
  double eps_ = 0;
  at::Tensor gain_;  // [H, E]
};

}  // namespace lagwise
