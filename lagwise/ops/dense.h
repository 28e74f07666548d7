#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lagwise::ops {

/// A dense layer: y = x W^T + b + start over the last axis, differentiable by all four.
/// `start` is what the layer is added to, such as the input of a residual block.
///
/// The products are cut into pieces for the threads of ATen, which all other operators
/// use as well. How they are cut depends on the shape alone, so that the bits do not
/// depend on the number of threads.
///
/// Shapes  x [.., I], weight [O, I], bias [O] or undefined, start [.., O] or undefined
///         -> [.., O]; f32 or f64
at::Tensor dense(const at::Tensor& x, const at::Tensor& weight,
                 const at::Tensor& bias = {}, const at::Tensor& start = {});

struct DenseWeights {
  at::Tensor weight;  ///< [O, I]
  at::Tensor bias;    ///< [O] or undefined
};

/// Several layers of the same input, such as queries, keys and values: y_l of each. The
/// gradient of x is summed by the products themselves.
std::vector<at::Tensor> dense_each(const at::Tensor& x,
                                   const std::vector<DenseWeights>& layers);

/// Two layers with GELU between, as one step of the graph:
///
///     y = start + gelu(x W_in^T + b_in) W_out^T + b_out
///
/// Keeps the numbers before GELU, and computes those after it anew in the backward
/// pass. Shapes as of `dense`.
at::Tensor feed_forward(const at::Tensor& x, const DenseWeights& in,
                        const DenseWeights& out, const at::Tensor& start = {});

}  // namespace lagwise::ops
