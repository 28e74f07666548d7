#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/comparison.h"

namespace lagwise::bench {

struct LinearPlan {
  std::vector<int> threads = {1};  ///< for the comparisons with baselines
  int most_threads = 2;            ///< for the rows that compare threads
  bool quick = false;              ///< shorter sequences, fewer repetitions
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

/// Measures every case. What the baselines are:
///
///     recurrence        token by token, update then read (recurrence.h)
///     recurrence_fused  the same in one walk over the state
///     torch             plain ATen, in chunks; or eager, for the step
///     bare              ours without feature map and denominator
///     one_thread        ours on one thread; one long head: the bare kernel
///     n1024             ours at N = 1024, times N / 1024
///     position_100      our step at position 100
///
/// and those of gated_cases.h and convolution_cases.h.
std::vector<BenchRow> run_linear_cases(const LinearPlan& plan);

/// 4 D E a token forwards, 10 backwards: what linear attention needs at least.
double useful_gflop(const Comparison& c);

}  // namespace lagwise::bench
