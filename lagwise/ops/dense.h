#pragma once

#include <ATen/core/Tensor.h>

namespace lagwise::ops {

/// A dense layer: y = x W^T + b over the last axis, differentiable by all three.
///
/// Where BLAS has one thread (blas_threads.h), the three products are cut into pieces
/// for the threads of ATen, which all other operators use as well: one pool instead of
/// two that fight over the cores. How they are cut depends on the shape alone, so that
/// the bits do not depend on the number of threads. Where BLAS has threads of its own
/// this is at::linear.
///
/// Shapes  x [.., I], weight [O, I], bias [O] or undefined -> [.., O]; f32 or f64
at::Tensor dense(const at::Tensor& x, const at::Tensor& weight,
                 const at::Tensor& bias = {});

}  // namespace lagwise::ops
