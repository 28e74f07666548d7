#pragma once

#include "bench/comparison.h"
#include "bench/linear_cases.h"

namespace lagwise::bench {

/// The rows `short_convolution` of `lagwise bench linear`: a causal convolution over 4
/// tokens of rows as wide as all heads, forward and backward (of rows and taps), one
/// thread. The baselines `plain` and `conv1d` are those of torch_convolution.h.
void measure_convolution_cases(const LinearPlan& plan, Comparer& comparer);

}  // namespace lagwise::bench
