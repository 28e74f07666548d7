#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lagwise {

/// Rows of different lengths as one tensor [B, longest], at least one column, filled up
/// with `filler`.
at::Tensor padded(const std::vector<std::vector<int64_t>>& rows, int64_t filler);

/// Their lengths [B]; undefined where all are equal, and nothing is padded.
at::Tensor lengths_of(const std::vector<std::vector<int64_t>>& rows);

}  // namespace lagwise
