#pragma once

#include <ATen/core/Tensor.h>

namespace lagwise::bench {

/// Exact attention with a bias per pair, in plain ATen with its N x N matrix.
///
///     o = softmax(scale q k^T + bias) v
///
/// Shapes  q, k, v [1, H, N, D]; bias [H, N, N], made beforehand and added in
///         place. Gradients by autograd.
at::Tensor naive_biased(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const at::Tensor& bias, double scale);

/// bias[h][i][j] = lag_bias[h][i - j + N - 1], lag_bias [H, 2N-1].
at::Tensor spread_bias(const at::Tensor& lag_bias);

/// Causal attention with a vector per distance as Music Transformer's authors skew it:
/// q E^T, one column of padding, reshaped so that row i moves by i, and masked.
///
/// Shapes  q, k, v [1, H, N, D]; e [N, D], its last row for distance 0.
/// Paper   Huang et al., arXiv:1809.04281, section 3.4.1.
at::Tensor skewed_huang(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const at::Tensor& e);

}  // namespace lagwise::bench
