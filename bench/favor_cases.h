#pragma once

#include <vector>

#include "bench/linear_cases.h"

namespace lagwise::bench {

/// The rows of `lagwise bench favor`: causal attention with FAVOR+ features of D = 64
/// (a projection, an exponential, then attention over F features) beside attention
/// with elu1 over as many. Baselines:
///
///     elu1      ours over F features that are there already; the ratio is a cost
///     features  of that time, what the features of q and k take alone
std::vector<BenchRow> run_favor_cases(const LinearPlan& plan);

}  // namespace lagwise::bench
