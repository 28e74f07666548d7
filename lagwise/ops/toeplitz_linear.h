#pragma once

#include <ATen/core/Tensor.h>

namespace lagwise::ops {

/// Full linear attention with a bias by lag, differentiable once, in O(N log N).
///
///     o_i = sum_j t[c] (q_i . k_j) v_j / (sum_j t[c] (q_i . k_j) + eps)
///     t = exp(lag_bias),  c = i - j + M - 1
///
/// What a bias does to softmax weights, exp(b) does to the weights of linear
/// attention. It does not split into a query and a key part, but it is Toeplitz: for
/// each channel d the sums over j of t (k_jd v_j) are convolutions, done by FFT.
///
/// Shapes   q [B, H, N, D], k [B, H, M, D]: features, not negative; v [B, H, M, E];
///          lag_bias [1|H, N+M-1] -> [B, H, N, E]. f32 or f64, any strides.
/// Cost     D (E + 1) transforms of length N + M a head, three times that backward.
///          Channels are taken a few at a time: [N, D, E] is never stored. Rows whose
///          weights are all far below the largest t (toeplitz_far.h; more queries than
///          keys make them) cost M (D + E) each.
/// Threads  over heads, same bits.
/// Numerics errors are relative to the largest t of each row, however far it stands
///          from the keys.
/// Paper    Luo et al., "Stable, Fast and Accurate: Kernelized Attention with Relative
///          Positional Encoding", NeurIPS 2021. https://arxiv.org/abs/2106.12566
at::Tensor toeplitz_linear(const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v, const at::Tensor& lag_bias,
                           double eps = 1e-6);

}  // namespace lagwise::ops
