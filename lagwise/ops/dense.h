#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lagwise::ops {

struct DenseWeights {
  at::Tensor weight;  ///< [O, I]
  at::Tensor bias;    ///< [O] or undefined
};

/// The norm of rms_norm.h before a layer. Without a gain: none.
struct InputNorm {
  at::Tensor gain;  ///< [I], or [G, I / G]: each of G parts of a row is normed, such as
  double eps = 0;   ///<   the heads of a token
};

/// A dense layer: y = norm(x) W^T + b + start over the last axis, differentiable by all
/// of them. `start` is what the layer is added to, such as the input of a residual block.
/// The normed rows are not kept but computed anew in the backward pass.
///
/// The products are cut into pieces for the threads of ATen, which all other operators
/// use as well. How they are cut depends on the shape alone, so that the bits do not
/// depend on the number of threads.
///
/// Shapes  x [.., I], weight [O, I], bias [O] or undefined, start [.., O] or undefined
///         -> [.., O]; f32 or f64
at::Tensor dense(const at::Tensor& x, const at::Tensor& weight,
                 const at::Tensor& bias = {}, const at::Tensor& start = {},
                 const InputNorm& norm = {});

/// Several layers of the same input, such as queries, keys and values.
struct DenseEach {
  std::vector<at::Tensor> y;  ///< of each layer, of x or of norm(x)
  at::Tensor x;               ///< x itself, to go on with past the layers
};

/// The gradient of x is summed by the products themselves, and what comes back through
/// DenseEach::x is added in the same pass.
DenseEach dense_each(const at::Tensor& x, const std::vector<DenseWeights>& layers,
                     const InputNorm& norm = {});

/// Two layers with GELU between, as one step of the graph:
///
///     y = start + gelu(norm(x) W_in^T + b_in) W_out^T + b_out
///
/// Where start is x, their gradients are one. Keeps x and the numbers before GELU, or x
/// alone (recompute.h); those after the norm and after GELU are computed anew in the
/// backward pass, a few rows at a time. Shapes as of `dense`.
at::Tensor feed_forward(const at::Tensor& x, const DenseWeights& in,
                        const DenseWeights& out, const at::Tensor& start = {},
                        const InputNorm& norm = {});

}  // namespace lagwise::ops
