#pragma once

#include <torch/nn/module.h>

namespace lagwise::nn {

/// A causal convolution over K tokens, each channel by itself:
///
///     y_t = sum_{j<K} taps_j x_{t-j},   x = 0 before the first token
///
/// At first taps_0 = 1 and the rest 0, so that rows pass as they are. What it remembers
/// are the K - 1 rows before the next one.
///
/// Parameters  taps [K, W], which weight decay leaves alone
class ShortConvolution : public torch::nn::Module {
 public:
  ShortConvolution(int64_t tokens, int64_t width);

  /// x [B, N, W] -> [B, N, W] after the rows `before` [B, K - 1, W]; undefined: none.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& before = {}) const;

  int64_t reach() const { return taps_.size(0) - 1; }  ///< K - 1

  /// The same after the rows `recent` [B, K - 1, W] (undefined: none), which become
  /// those before the row that comes next: `lengths` [B] of the rows of x are real,
  /// undefined: all.
  at::Tensor extend(at::Tensor& recent, const at::Tensor& x,
                    const at::Tensor& lengths) const;

 private:
  at::Tensor taps_;
};

}  // namespace lagwise::nn
