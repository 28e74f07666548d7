#pragma once

#include <ATen/core/Tensor.h>

namespace lagwise::ops {

/// x / sqrt(mean x^2 + eps) over the last axis, times a gain: one pass forward and one
/// back, where plain operators make a dozen. Differentiable once by both; f32 or f64.
///
/// Shapes   x [.., C], gain [C] -> [.., C]; or x [.., G, C] with gain [G, C], such as
///          heads with gains of their own
/// Threads  pieces of rows, chosen by shape: the same bits on any number.
/// Maths    kernels/rms_norm.h
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps);

}  // namespace lagwise::ops
