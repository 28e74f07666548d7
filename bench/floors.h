#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lagwise::bench {

/// What is asked of a baseline, so that beating it means something.
struct FloorQuery {
  std::string baseline;   ///< recurrence, recurrence_fused, torch, torch_chunked, ...
  std::string direction;  ///< forward, backward, both, step, training step
  int64_t n, heads, d, e;
  int threads;
};

/// The least share of the rate of the machine's own matrix product (gemm_rate.h), on as
/// many threads, at which a fair baseline does the useful flops of its row. Nothing
/// where none was measured.
///
/// A share, because baselines are made of such products or are bound by memory, and
/// neither follows the peak of an FMA loop from one CPU to the next.
std::optional<double> floor_share(const FloorQuery& query);

/// What a baseline reached beside what it should reach.
struct FloorCheck {
  double gemm_gflops = 0;
  double share = 0;  ///< of that rate, in its best repetition
  double floor = 0;  ///< the least that is fair
  bool weak() const { return share < floor; }
};

/// Of a baseline that takes `best_ms` for `gflop` useful flops.
FloorCheck check_floor(double floor, double gflop, double best_ms, double gemm_gflops);

}  // namespace lagwise::bench
