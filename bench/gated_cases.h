#pragma once

#include "bench/comparison.h"
#include "bench/linear_cases.h"

namespace lagwise::bench {

/// The rows `gated`, `delta` and `gated_delta` of `lagwise bench linear`: forward,
/// backward (every gradient) and step, one thread, without a denominator. What the
/// baselines are:
///
///     torch_chunked  plain ATen, in chunks of 64 rows (torch_gated.h); no step
///     loop           plain ATen, token by token
///     fixed_decay    ours with one decay per head: the ratio is the cost, ours / that
void measure_gated_cases(const LinearPlan& plan, Comparer& comparer);

}  // namespace lagwise::bench
