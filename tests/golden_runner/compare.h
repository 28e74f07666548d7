#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "tests/golden_runner/golden_case.h"

namespace lagwise::golden {

/// Where `got` misses `want`, in one line; empty where no number is missing and every
/// one is within
///
///     |got - want| <= atol + rtol max(|want|, rms)
///
/// with rms the root mean square of all of `want`: a sum of terms of both signs may
/// come out near zero, where its own relative error means nothing. Leading axes of
/// length 1 do not count: [1, H, N, D] may be compared with [H, N, D].
std::string difference(const at::Tensor& got, const at::Tensor& want,
                       Tolerance allowed);

}  // namespace lagwise::golden
