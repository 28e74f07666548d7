#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "lagwise/ops/encoded.h"

namespace lagwise::ops {

/// Random features of the rows of x, differentiable once by x, f32 or f64, any
/// strides: a projection and an exponential in one pass (maths: kernels/favor.h).
///
/// Shapes  x [B, H, N, D], directions [m, D] -> x [B, H, N, F], log_scale [B, H, N];
///         F = 2 m for two_sided, else m; relu has no log_scale.
/// Choice  kind is positive, two_sided or relu; offset is that of relu.
/// Meaning the features are x exp(log_scale). In a quotient of attention the scale of
///         a query cancels; that of a key does not.
Features favor_features(const at::Tensor& x, const at::Tensor& directions,
                        const std::string& kind = "positive", double offset = 1e-3);

}  // namespace lagwise::ops
