#pragma once

#include <ATen/core/Tensor.h>

#include "lagwise/ops/encoded.h"

namespace lagwise::nn {

/// Leaves out each number with probability p and scales the rest by 1 / (1 - p). What
/// is left out depends on the draw, the place in the model and the index alone.
at::Tensor dropout(const at::Tensor& x, double p, const Draw& draw, int64_t place);

}  // namespace lagwise::nn
