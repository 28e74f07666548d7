#include "bench/fma_peak.h"

#include <cstdint>

#include "bench/best_gflops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/fma_peak.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// After foreach_target:
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lagwise::bench::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// `rounds` times twelve independent multiply-adds per lane; returns the
/// flops done. An FMA takes 4 cycles and a core starts 2 a cycle, so at least
/// 8 must be in flight; twelve leave slack, and fit the 16 registers of AVX2.
/// Named variables, because g++ keeps an array of vectors in memory.
double fma_rounds(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> tag;
  const auto factor = hn::Set(tag, 0.999f);
  const auto addend = hn::Set(tag, 0.001f);
  // Twelve different starts: equal ones would be merged into fewer sums.
  const auto start = [&](float x) { return hn::Set(tag, sink[0] + x); };
  auto a0 = start(0.00f), a1 = start(0.01f), a2 = start(0.02f), a3 = start(0.03f);
  auto a4 = start(0.04f), a5 = start(0.05f), a6 = start(0.06f), a7 = start(0.07f);
  auto a8 = start(0.08f), a9 = start(0.09f), a10 = start(0.10f), a11 = start(0.11f);
  for (int64_t i = 0; i < rounds; ++i) {
    a0 = hn::MulAdd(a0, factor, addend);
    a1 = hn::MulAdd(a1, factor, addend);
    a2 = hn::MulAdd(a2, factor, addend);
    a3 = hn::MulAdd(a3, factor, addend);
    a4 = hn::MulAdd(a4, factor, addend);
    a5 = hn::MulAdd(a5, factor, addend);
    a6 = hn::MulAdd(a6, factor, addend);
    a7 = hn::MulAdd(a7, factor, addend);
    a8 = hn::MulAdd(a8, factor, addend);
    a9 = hn::MulAdd(a9, factor, addend);
    a10 = hn::MulAdd(a10, factor, addend);
    a11 = hn::MulAdd(a11, factor, addend);
  }
  const auto first = hn::Add(hn::Add(a0, a1), hn::Add(a2, a3));
  const auto second = hn::Add(hn::Add(a4, a5), hn::Add(a6, a7));
  const auto third = hn::Add(hn::Add(a8, a9), hn::Add(a10, a11));
  const auto sum = hn::SumOfLanes(tag, hn::Add(hn::Add(first, second), third));
  sink[0] = hn::GetLane(sum) * 1e-3f;
  return 2.0 * 12.0 * static_cast<double>(hn::Lanes(tag)) * static_cast<double>(rounds);
}

}  // namespace lagwise::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::bench {
namespace {

HWY_EXPORT(fma_rounds);

constexpr int64_t kRounds = 600'000;  // about 2 ms

}  // namespace

double fma_peak_gflops(int threads) {
  return best_gflops(threads, [](int) {
    float sink = 0.5f;
    return HWY_DYNAMIC_DISPATCH(fma_rounds)(kRounds, &sink);
  });
}

}  // namespace lagwise::bench
#endif  // HWY_ONCE
