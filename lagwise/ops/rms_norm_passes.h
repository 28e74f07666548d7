#pragma once

#include <ATen/core/Tensor.h>

/// The passes of rms_norm (rms_norm.h), without autograd. x and gain are dense.
namespace lagwise::ops {

struct RmsForward {
  at::Tensor y;         ///< like x
  at::Tensor inv_size;  ///< [rows]: r of kernels/rms_norm.h
};
RmsForward rms_forward(const at::Tensor& x, const at::Tensor& gain, double eps);

struct RmsGradients {
  at::Tensor x, gain;
};
RmsGradients rms_backward(const at::Tensor& x, const at::Tensor& gain,
                          const at::Tensor& inv_size, const at::Tensor& dy);

}  // namespace lagwise::ops
