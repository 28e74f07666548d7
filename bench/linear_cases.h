#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lagwise::bench {

/// One line of `lagwise bench linear`: our time beside one baseline's.
struct LinearRow {
  std::string name;       ///< of the case; says so where `ratio` is a cost
  std::string direction;  ///< forward, backward, step
  int64_t n = 0, heads = 0, d = 0, e = 0;
  int threads = 1;
  double ours_ms = 0;  ///< of one call
  std::string baseline;
  double baseline_ms = 0;
  double ratio = 0;            ///< baseline / ours; of a cost: ours / baseline
  double gflops = 0;           ///< ours, useful work: 4 D E (backward 10 D E) a token
  double peak_gflops = 0;      ///< of an FMA loop on as many threads, in this run
  double fraction = 0;         ///< gflops / peak_gflops
  int64_t extra_bytes = 0;     ///< our working memory beyond inputs and outputs
  bool weak_baseline = false;  ///< slower than its floor: the row proves nothing
};

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
std::vector<LinearRow> run_linear_cases(const LinearPlan& plan);

}  // namespace lagwise::bench
