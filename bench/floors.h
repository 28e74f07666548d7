#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lagwise::bench {

/// What is asked of a baseline, so that beating it means something.
struct FloorQuery {
  std::string baseline;   ///< recurrence, recurrence_fused, torch
  std::string direction;  ///< forward, backward, step
  int64_t n, heads, d, e;
  int threads;
};

/// The slowest a fair baseline may be, in ms, on a core whose FMA peak is
/// `peak_gflops`; nothing where no peer was measured. The figures are those of
/// public code (fast-transformers, eager PyTorch) at 104 GFLOP/s.
std::optional<double> floor_ms(const FloorQuery& query, double peak_gflops);

}  // namespace lagwise::bench
