#pragma once

#include <ATen/core/Tensor.h>

namespace lagwise::bench {

/// Causal softmax attention as everybody first writes it, in plain ATen.
///
///     o_i = sum_{j <= i} softmax_j(q_i . k_j / sqrt D) v_j
///
/// Shapes  q, k [B, H, N, D], v [B, H, N, E] -> [B, H, N, E]; gradients by
///         autograd.
/// Cost    4 N N D flops a head (the full square), and N N numbers a head.
at::Tensor naive_exact(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

/// The keys and values of all tokens so far, in buffers that fit the longest.
struct KeyValueCache {
  at::Tensor k;  ///< [B, H, longest, D]
  at::Tensor v;  ///< [B, H, longest, E]
};

/// One token of the same: writes k, v [B, H, D|E] into the cache at `position`
/// and lets q [B, H, D] read positions 0 .. position. Returns [B, H, E].
/// Cost  4 N D flops a head, and reading the whole cache.
at::Tensor naive_exact_step(const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const KeyValueCache& cache,
                            int64_t position);

}  // namespace lagwise::bench
