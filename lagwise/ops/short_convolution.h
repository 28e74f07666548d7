#pragma once

#include <ATen/core/Tensor.h>

namespace lagwise::ops {

/// A causal convolution over K tokens, each channel by itself: one pass forward and one
/// back, where plain operators make dozens. Differentiable once by all three; f32 or f64,
/// any strides.
///
/// Shapes   x [B, N, W], taps [K, W], before [B, K - 1, W] (undefined: zeros)
///          -> [B, N, W]
/// Threads  pieces of rows, chosen by shape: the same bits on any number.
/// Maths    kernels/short_convolution.h
at::Tensor short_convolution(const at::Tensor& x, const at::Tensor& taps,
                             const at::Tensor& before = {});

}  // namespace lagwise::ops
