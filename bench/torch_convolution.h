#pragma once

#include <ATen/core/Tensor.h>

namespace lagwise::bench {

/// A causal convolution over the tokens, each channel by itself (ops/short_convolution.h),
/// in torch's operators, differentiable by autograd. x [B, N, W], taps [K, W] -> [B, N, W].

/// A product and a sum of whole rows a tap.
at::Tensor convolved_by_products(const at::Tensor& x, const at::Tensor& taps);

/// By conv1d with a group a channel. Its channels stand before the rows, so that rows go
/// there and back.
at::Tensor convolved_by_conv1d(const at::Tensor& x, const at::Tensor& taps);

}  // namespace lagwise::bench
