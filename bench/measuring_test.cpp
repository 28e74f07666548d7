#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "bench/floors.h"
#include "bench/fma_peak.h"
#include "bench/memory.h"
#include "bench/timing.h"

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

TEST(Floors, ScaleWithTheMachineAndTheLength) {
  const FloorQuery query = {"recurrence", "forward", 4096, 8, 64, 64, 1};
  EXPECT_DOUBLE_EQ(*floor_ms(query, 104), 25);
  EXPECT_DOUBLE_EQ(*floor_ms(query, 208), 12.5);
  const FloorQuery shorter = {"recurrence_fused", "backward", 1024, 8, 64, 64, 1};
  EXPECT_DOUBLE_EQ(*floor_ms(shorter, 104), 19);
}

TEST(Floors, ExistOnlyWhereAPeerWasMeasured) {
  EXPECT_FALSE(floor_ms({"torch", "forward", 4096, 8, 64, 64, 1}, 104));
  EXPECT_FALSE(floor_ms({"recurrence", "forward", 4096, 8, 64, 64, 2}, 104));
  EXPECT_FALSE(floor_ms({"recurrence", "forward", 4096, 8, 256, 256, 1}, 104));
}

}  // namespace
}  // namespace lagwise::bench
