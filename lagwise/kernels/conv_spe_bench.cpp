// Time per draw of noise, and of ConvSPE per cell by either method: one panel of 16
// realisations, 64 features, both sides, noise given. The two columns of methods cross
// where faster_method switches.

#include <benchmark/benchmark.h>

#include <span>
#include <vector>

#include "lagwise/kernels/conv_spe.h"

namespace lagwise::kernels {
namespace {

constexpr int64_t kWidth = 16, kD = 64;

void single_draws(benchmark::State& state) {
  std::vector<float> z(1024);
  const NoiseRow row = Noise(1).at({});
  for (auto _ : state) row.fill_normal<float>(0, std::span(z));
  state.SetItemsProcessed(state.iterations() * 1024);
}
BENCHMARK(single_draws);

void panel_draws(benchmark::State& state) {
  std::vector<float> z(1024 * kWidth);
  const NoiseRow row = Noise(1).at({});
  const auto kind = state.range(0) == 0 ? NoiseKind::normal : NoiseKind::sign;
  for (auto _ : state) noise_panel<float>(row, kind, 0, 1024, kWidth, z.data());
  state.SetItemsProcessed(state.iterations() * 1024 * kWidth);
}
BENCHMARK(panel_draws)->Arg(0)->Arg(1)->ArgName("sign");

void filter(benchmark::State& state, ConvMethod method) {
  const int64_t taps = state.range(0), n = state.range(1), samples = n + taps - 1;
  const std::vector<float> x(static_cast<size_t>(n * kD), 0.5f);
  const std::vector<float> a(static_cast<size_t>(kD * taps), 0.1f);
  const std::vector<float> z(static_cast<size_t>(kD * samples * kWidth), 0.3f);
  std::vector<float> out(static_cast<size_t>(2 * n * kWidth));
  ConvProblem<float> p{.window = {{0, 0, 0}, {1, 1, n}, {1, 1, taps}},
                       .noise = {.row = Noise(1).at({})}};
  p.noise.given = z.data(), p.noise.feature_step = samples * kWidth;
  p.noise.realisation_step = 1, p.noise.step = {0, 0, kWidth};
  p.method = method, p.d = kD, p.r = kWidth, p.sides = 2;
  std::vector<float> scratch(static_cast<size_t>(conv_scratch(p)));
  const ConvRows<const float> rows{{x.data(), n, kD, kD, 1}};
  const ConvSide<float> sides[] = {
      {rows, a.data(), {{out.data(), n, kWidth, kWidth, 1}}},
      {rows, a.data(), {{out.data() + n * kWidth, n, kWidth, kWidth, 1}}}};
  for (auto _ : state) conv_spe<float>(p, sides, scratch.data());
  state.SetItemsProcessed(state.iterations() * n);
}
void shapes(benchmark::internal::Benchmark* b) {
  for (const int64_t n : {64, 1024})
    for (const int64_t taps : {8, 24, 32, 64, 128, 512}) b->Args({taps, n});
  b->ArgNames({"taps", "cells"});
}
BENCHMARK_CAPTURE(filter, direct, ConvMethod::direct)->Apply(shapes);
BENCHMARK_CAPTURE(filter, fourier, ConvMethod::fourier)->Apply(shapes);

}  // namespace
}  // namespace lagwise::kernels
