#pragma once

#include "lagwise/ops/linear/linear_call.h"

namespace lagwise::ops {

/// Linear attention with gates or writing strengths, token by token in plain ATen.
LinearResult linear_by_token(const LinearCall& call, const std::string& feature_map);

}  // namespace lagwise::ops
