#pragma once

#include <ATen/core/Tensor.h>

#include "lagwise/nn/pass.h"

namespace lagwise::nn {

/// Leaves out each number of x [B, N, C] with probability p = pass.dropout and scales the
/// rest by 1 / (1 - p). What is left out depends on the draw, the place in the model, the
/// number of the sequence in the whole batch, the position and the channel alone: however
/// a batch is cut into parts, by sequences or along them, the same numbers are left out.
at::Tensor dropout(const at::Tensor& x, const Pass& pass, int64_t place);

}  // namespace lagwise::nn
