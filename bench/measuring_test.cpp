#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "bench/floors.h"
#include "bench/fma_peak.h"
#include "bench/gemm_rate.h"
#include "bench/memory.h"
#include "bench/timing.h"
#include "lagwise/ops/torch/blas_threads.h"

namespace lagwise::bench {
namespace {

TEST(FmaPeak, IsPositive) { EXPECT_GT(fma_peak_gflops(1), 0); }

TEST(FmaPeak, RunsOnSeveralThreads) { EXPECT_GT(fma_peak_gflops(2), 0); }

TEST(Timing, CallsEverySideInTurn) {
  std::string order;
  const Patience patience = {.least = 5, .most = 5, .repetition_ms = 0};
  const auto times =
      time_in_turn({{[&] { order += 'a'; }}, {[&] { order += 'b'; }}}, patience);
  EXPECT_EQ(times.size(), 2u);
  // Two calls each to warm up, then five repetitions by turns.
  EXPECT_EQ(order, "aabbababababab");
  for (const Times& t : times) EXPECT_LE(t.best_ms, t.median_ms);
}

TEST(Timing, CallsEverySideByItselfInRounds) {
  std::string order;
  const auto side = [&](char name) {
    return Side{[&order, name] {
      if (order.empty() || order.back() != name) order += name;
    }};
  };
  const Patience patience = {.least = 2, .most = 2, .repetition_ms = 0};
  const auto times = time_apart({side('a'), side('b')}, patience);
  EXPECT_EQ(order, "ababab");
  for (const Times& t : times) EXPECT_LE(t.best_ms, t.median_ms);
}

TEST(Memory, CountsTemporariesButNotResults) {
  const int64_t extra = extra_bytes([] {
    const at::Tensor temporary = at::empty({1000}, at::kFloat);
    return std::vector{at::empty({500}, at::kFloat)};
  });
  EXPECT_EQ(extra, 4000);
}

TEST(Memory, TakesTheMostAtOnceNotTheSum) {
  const int64_t extra = extra_bytes([] {
    for (int i = 0; i < 10; ++i) at::empty({100}, at::kFloat);
    return std::vector<at::Tensor>{};
  });
  EXPECT_EQ(extra, 400);
}

TEST(Memory, SeesOtherThreads) {
  set_threads(2);
  const int64_t extra = extra_bytes([] {
    at::parallel_for(0, 2, 1, [](int64_t, int64_t) { at::empty({100}, at::kFloat); });
    return std::vector<at::Tensor>{};
  });
  EXPECT_GE(extra, 400);
  EXPECT_LE(extra, 800);
}

TEST(Memory, ResultsOutliveTheMeasurement) {
  at::Tensor kept;
  extra_bytes([&] {
    kept = at::empty({100}, at::kFloat);
    return std::vector{kept};
  });
  kept.fill_(1);
  EXPECT_EQ(kept.sum().item<float>(), 100);
}

TEST(GemmRate, IsBelowThePeak) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "our own loop, which measures the peak, is slow under sanitizers";
#endif
  const double rate = gemm_gflops(1);
  EXPECT_GT(rate, 0);
  EXPECT_LE(rate, 1.2 * fma_peak_gflops(1));  // both measured, neither exactly
}

TEST(GemmRate, LeavesTheThreadsOfBlasAsTheyWere) {
  const int before = ops::blas_threads();
  EXPECT_GT(gemm_gflops(2), 0);
  EXPECT_EQ(ops::blas_threads(), before);
}

TEST(Floors, AreSharesOfTheMatrixProductsRate) {
  // 2 GFLOP in 100 ms are 20 GFLOP/s: a fifth of 100, a tenth of 200.
  EXPECT_DOUBLE_EQ(check_floor(0.15, 2, 100, 100).share, 0.2);
  EXPECT_FALSE(check_floor(0.15, 2, 100, 100).weak());
  EXPECT_TRUE(check_floor(0.15, 2, 100, 200).weak());
  EXPECT_FALSE(check_floor(0.15, 4, 100, 200).weak());
  EXPECT_FALSE(FloorCheck().weak());  // no floor
}

TEST(Floors, ExistOnlyWhereABaselineWasMeasured) {
  EXPECT_TRUE(floor_share({"recurrence", "forward", 4096, 8, 64, 64, 1}));
  EXPECT_TRUE(floor_share({"recurrence", "forward", 1024, 8, 64, 64, 1}));
  EXPECT_FALSE(floor_share({"recurrence", "forward", 4096, 8, 64, 64, 2}));
  EXPECT_FALSE(floor_share({"recurrence", "forward", 4096, 8, 256, 256, 1}));
  EXPECT_FALSE(floor_share({"torch", "forward", 4096, 8, 64, 64, 1}));
  EXPECT_TRUE(floor_share({"torch", "step", 1, 8, 64, 64, 1}));
  EXPECT_FALSE(floor_share({"torch", "step", 4096, 8, 64, 64, 1}));  // exact attention
}

TEST(Floors, HoldEveryBaselineOfTraining) {
  for (const int64_t n : {512, 2048, 8192}) {
    EXPECT_TRUE(floor_share({"torch_chunked", "training step", n, 8, 64, 64, 2}));
    EXPECT_TRUE(floor_share({"materialised", "training step", n, 8, 64, 64, 2}));
  }
  EXPECT_TRUE(floor_share({"torch_chunked", "training step", 256, 4, 16, 16, 1}));
  EXPECT_TRUE(floor_share({"materialised", "training step", 256, 4, 64, 16, 1}));
  // Of a sixteenth of the length, as --quick has it, overheads are the greater part.
  EXPECT_FALSE(floor_share({"torch_chunked", "training step", 32, 8, 64, 64, 2}));
}

}  // namespace
}  // namespace lagwise::bench
