#include "bench/floors.h"

#include <limits>

namespace lagwise::bench {
namespace {

constexpr int64_t kAnyLength = std::numeric_limits<int64_t>::max();

struct Floor {
  const char *baseline, *direction;
  int64_t shortest, longest;  // N
  int64_t heads, d, e;
  int threads;
  double share;
};

// MEASURED
constexpr Floor kFloors[] = {
    {"recurrence", "forward", 1, kAnyLength, 8, 64, 64, 1, 0.01},
    {"recurrence", "forward", 1, kAnyLength, 8, 256, 64, 1, 0.01},
    {"recurrence", "backward", 1, kAnyLength, 8, 64, 64, 1, 0.01},
    {"recurrence_fused", "forward", 1, kAnyLength, 8, 64, 64, 1, 0.01},
    {"recurrence_fused", "forward", 1, kAnyLength, 8, 256, 64, 1, 0.01},
    {"recurrence_fused", "backward", 1, kAnyLength, 8, 64, 64, 1, 0.01},
    {"torch", "step", 1, 1, 8, 64, 64, 1, 0.001},
    {"torch", "forward", 2048, 2048, 8, 64, 64, 2, 0.01},
    {"torch", "both", 2048, 2048, 8, 64, 64, 2, 0.01},
    {"skew", "forward", 4096, 4096, 8, 64, 64, 2, 0.01},
    {"skew", "both", 4096, 4096, 8, 64, 64, 2, 0.01},
    {"torch_chunked", "training step", 256, kAnyLength, 4, 16, 16, 1, 0.01},
    {"torch_chunked", "training step", 512, kAnyLength, 8, 64, 64, 1, 0.01},
    {"torch_chunked", "training step", 512, kAnyLength, 8, 64, 64, 2, 0.01},
    {"materialised", "training step", 256, kAnyLength, 4, 64, 16, 1, 0.01},
    {"materialised", "training step", 512, kAnyLength, 8, 64, 64, 1, 0.01},
    {"materialised", "training step", 512, kAnyLength, 8, 64, 64, 2, 0.01},
};

}  // namespace

std::optional<double> floor_share(const FloorQuery& q) {
  for (const Floor& f : kFloors)
    if (q.baseline == f.baseline && q.direction == f.direction && q.n >= f.shortest &&
        q.n <= f.longest && q.heads == f.heads && q.d == f.d && q.e == f.e &&
        q.threads == f.threads)
      return f.share;
  return {};
}

FloorCheck check_floor(double floor, double gflop, double best_ms, double gemm_gflops) {
  return {gemm_gflops, gflop / (best_ms * 1e-3) / gemm_gflops, floor};
}

}  // namespace lagwise::bench
