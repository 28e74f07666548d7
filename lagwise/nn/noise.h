#pragma once

#include <ATen/core/Tensor.h>

#include "lagwise/ops/encoded.h"

namespace lagwise::nn {

/// A trained parameter with independent normal numbers of that deviation in it. Each is
/// a function of the seed, the place (a number no other parameter of the model has) and
/// its own index: the same seed gives the same model on any machine.
at::Tensor normal_parameter(at::IntArrayRef sizes, double deviation, uint64_t seed,
                            int64_t place);

/// A trained parameter full of one number.
at::Tensor constant_parameter(at::IntArrayRef sizes, double value);

/// Leaves out each number with probability p and scales the rest by 1 / (1 - p). What
/// is left out depends on the draw, the place in the model and the index alone.
at::Tensor dropout(const at::Tensor& x, double p, const Draw& draw, int64_t place);

}  // namespace lagwise::nn
