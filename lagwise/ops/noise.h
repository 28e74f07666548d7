#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "lagwise/core/noise.h"

namespace lagwise::ops {

/// The numbers of core/noise.h as a tensor [count], Float or Double:
///
///     out[i] = draw(first + i) of the row `at` of `noise`
///
/// `kind` is uniform, normal or sign. A pure function of its arguments: longer rows begin
/// with shorter ones, and two rows may be drawn anywhere, in any order.
at::Tensor noise(const std::string& kind, const Noise& noise, const NoiseAt& at,
                 int64_t first, int64_t count, at::ScalarType type = at::kFloat);

}  // namespace lagwise::ops
