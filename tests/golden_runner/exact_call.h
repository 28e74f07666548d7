#pragma once

#include "lagwise/ops/encoded.h"

namespace lagwise::golden {

/// Exact attention over what an encoding handed over, v [B, H, M, E].
at::Tensor attend_exactly(const Encoded& encoded, const at::Tensor& v,
                          const Placement& at);

}  // namespace lagwise::golden
