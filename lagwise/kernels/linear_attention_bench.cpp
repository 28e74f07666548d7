#include <benchmark/benchmark.h>

#include <chrono>
#include <span>
#include <vector>

#include "lagwise/core/noise.h"
#include "lagwise/kernels/linear_attention.h"
#include "lagwise/kernels/linear_step.h"

namespace lagwise::kernels {
namespace {

constexpr int64_t kWidth = 64;  // D and E
constexpr FeatureMap kElu1{FeatureMap::Kind::elu1};

class Mat {
 public:
  Mat(int64_t rows, int64_t cols, int64_t stream = -1)
      : rows_(rows), cols_(cols), data_(static_cast<size_t>(rows * cols)) {
    if (stream >= 0) Noise(1, stream).at({}).fill_normal(0, std::span(data_));
  }
  MatView<float> view() { return {data_.data(), rows_, cols_, cols_}; }

 private:
  int64_t rows_, cols_;
  std::vector<float> data_;
};

/// One head's inputs, output and state, with the usual denominator.
struct Head {
  explicit Head(int64_t n)
      : q(n, kWidth, 0), k(n, kWidth, 1), v(n, kWidth, 2), out(n, kWidth) {}

  Denominator<float> denominator() {
    return {Denominator<float>::From::features, 1e-6f, false, {}, z.view().data};
  }

  Mat q, k, v, out, s{kWidth, kWidth}, z{1, kWidth};
};

/// Runs `pass` over `tokens` tokens again and again. Linear cost shows as the same
/// ns_per_token for every N.
template <class Pass>
void time_per_token(benchmark::State& state, int64_t tokens, const Pass& pass) {
  const auto begin = std::chrono::steady_clock::now();
  for (auto _ : state) {
    pass();
    benchmark::ClobberMemory();
  }
  const std::chrono::duration<double, std::nano> spent =
      std::chrono::steady_clock::now() - begin;
  state.counters["ns_per_token"] =
      spent.count() / static_cast<double>(state.iterations() * tokens);
}

void causal_forward(benchmark::State& state) {
  const int64_t n = state.range(0);
  Head head(n);
  Mat scratch(1, linear_scratch<float>(kWidth, kWidth));
  time_per_token(state, n, [&] {
    head.s = Mat(kWidth, kWidth);
    head.z = Mat(1, kWidth);
    causal_linear<float>({head.q.view(), kElu1}, {head.k.view(), kElu1},
                         {head.v.view()}, {}, head.denominator(), head.s.view(),
                         {head.out.view()}, scratch.view().data);
  });
}
BENCHMARK(causal_forward)->RangeMultiplier(4)->Range(256, 16384)->ArgName("N");

void step(benchmark::State& state) {
  Head head(1);
  Mat scratch(1, linear_step_scratch<float>(kWidth, kWidth));
  const Rows<float> q{head.q.view(), kElu1}, k{head.k.view(), kElu1};
  time_per_token(state, 1, [&] {
    linear_step<float>(q, k, q, k, head.v.view(), {}, head.denominator(), head.s.view(),
                       head.out.view(), scratch.view().data);
  });
}
BENCHMARK(step);

}  // namespace
}  // namespace lagwise::kernels
