#pragma once

#include "lagwise/ops/linear/linear_cpu.h"

namespace lagwise::ops {

/// Linear attention by the delta rule, for linear_cpu.cpp and linear_backward_cpu.cpp:
/// the call has writing strengths, and so neither a denominator nor log_scale.
/// Threads share out heads and, forwards, columns: every number comes out with the same
/// bits.
void delta_forward_cpu(const LinearCall& call, const LinearForward& to);
LinearGradients delta_backward_cpu(const LinearCall& call, const LinearForward& saved,
                                   const LinearCotangents& cotangents);

}  // namespace lagwise::ops
