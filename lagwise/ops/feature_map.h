#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "lagwise/kernels/feature_map.h"

namespace lagwise::ops {

/// phi(x) of a pointwise feature map, number by number; differentiable once, f32 or
/// f64, any shape and strides.
///
/// `map` is none, elu1, relu[:offset=0.001], relu_squared[:offset=0], exp or silu
/// (kernels/feature_map.h). `linear_attention` takes the same words and saves the
/// memory of the features.
at::Tensor feature_map(const at::Tensor& x, const std::string& map);

/// The map that a text names; a TORCH_CHECK that begins with `op` names the legal
/// ones. The last text is remembered: a decoding step has no time to parse it again.
kernels::FeatureMap read_feature_map(const char* op, const std::string& text);

}  // namespace lagwise::ops
