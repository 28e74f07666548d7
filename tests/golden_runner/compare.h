#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "tests/golden_runner/golden_case.h"

namespace lagwise::golden {

/// Where `got` misses `want`, in one line; empty where every element is within
/// |got - want| <= atol + rtol |want| and no number is missing. Leading axes of
/// length 1 do not count: [1, H, N, D] may be compared with [H, N, D].
std::string difference(const at::Tensor& got, const at::Tensor& want,
                       Tolerance allowed);

}  // namespace lagwise::golden
