#pragma once

#include <ATen/core/Tensor.h>

#include "lagwise/ops/torch_names.h"

namespace lagwise::ops {

/// What a step needs beside the cache. Undefined tensors mean "none".
struct ExactStepOptions {
  Optional<double> scale = {};    ///< 1 / sqrt(D) unless given
  at::Tensor lag_bias = {};       ///< [1|H, M]: as in exact_attention with N = 1,
  at::Tensor lag_keys = {};       ///< [1|H, M, D]  entry M-1-j serves key j
  at::Tensor lag_values = {};     ///< [1|H, M, E]
  Optional<int64_t> window = {};  ///< only the last `window` keys are seen
  at::Tensor key_bias = {};       ///< [B, H, M], added to every score of a key
};

/// One query per head, standing at the last key, against all keys: the last row of
/// exact_attention. No gradients.
///
/// Shapes  q [B, H, D], k [B, H, M, D], v [B, H, M, E] -> [B, H, E]. k and v of the
///         type of q, or BFloat16 with q Float; rows dense, other strides free, so that
///         views of a longer buffer are read in place.
/// Cost    one reading of k and v.
at::Tensor exact_attention_step(const at::Tensor& q, const at::Tensor& k,
                                const at::Tensor& v, const ExactStepOptions& options);

}  // namespace lagwise::ops
