#include "bench/comparison.h"

#include <algorithm>
#include <utility>

#include "bench/fma_peak.h"
#include "bench/gemm_rate.h"
#include "bench/memory.h"
#include "lagwise/ops/torch/blas_threads.h"

namespace lagwise::bench {

Comparer::Comparer(bool quick, std::function<void(const std::string&)> progress)
    : Comparer(quick, Manner{.progress = std::move(progress)}) {}

Comparer::Comparer(bool quick, Manner manner)
    : quick_(quick), manner_(std::move(manner)) {
  if (quick) manner_.patience = {.least = 5, .most = 5, .repetition_ms = 1};
}

/// The roof only rises: a disturbed measurement must not flatter us.
double Comparer::peak(int threads) {
  double& best = peaks_[threads];
  return best = std::max(best, fma_peak_gflops(threads));
}

double Comparer::gemm(int threads) {
  double& best = gemms_[threads];
  return best = std::max(best, gemm_gflops(threads));
}

void Comparer::measure(const Comparison& c) {
  manner_.progress(c.name + ", " + c.direction + ", " + std::to_string(c.threads) +
                   " thread(s)");
  std::vector<Side> sides = {{c.ours, c.threads}};
  for (const Baseline& b : c.baselines) sides.push_back({b.call, b.threads});
  const double roof = peak(c.threads);
  const std::vector<Times> times = manner_.time(sides, manner_.patience);
  set_threads(c.threads);
  BenchRow row;
  row.name = c.name, row.direction = c.direction;
  row.n = c.shape.n, row.heads = c.shape.heads, row.d = c.shape.d, row.e = c.shape.e;
  row.batch = c.shape.batch;
  row.threads = c.threads;
  row.ours_ms = times[0].median_ms;
  row.peak_gflops = std::max(roof, peak(c.threads));
  row.gflops = c.gflop / (row.ours_ms * 1e-3);
  row.fraction = row.gflops / row.peak_gflops;
  row.extra_bytes = extra_bytes(c.ours);
  for (size_t i = 0; i < c.baselines.size(); ++i) {
    compare(row, c, c.baselines[i], times[i + 1]);
  }
}

/// Floors are best times, so the baseline's best is held against them.
void Comparer::compare(BenchRow row, const Comparison& c, const Baseline& baseline,
                       const Times& times) {
  row.baseline = baseline.name;
  row.baseline_ms = times.median_ms * baseline.times;
  if (baseline.weigh) row.baseline_bytes = extra_bytes(baseline.call);
  row.ratio = c.is_cost ? row.ours_ms / row.baseline_ms : row.baseline_ms / row.ours_ms;
  auto floor = floor_share({baseline.name, c.direction, c.shape.n, c.shape.heads,
                            c.shape.d, c.shape.e, c.threads});
  if (baseline.floor_share > 0) floor = baseline.floor_share;
  if (floor && c.gflop > 0)
    row.floor =
        check_floor(*floor, c.gflop, times.best_ms * baseline.times, gemm(c.threads));
  // No peer was measured in place of chunked torch, but without a fast matrix
  // product it is no rival.
  const bool crippled =
      baseline.name == "torch" && c.direction != "step" && !ops::has_fast_blas();
  row.weak_baseline = crippled || row.floor.weak();
  rows_.push_back(row);
  manner_.on_row(row);
}

}  // namespace lagwise::bench
