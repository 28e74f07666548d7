#include "bench/best_gflops.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

namespace lagwise::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kRepetitions = 8;

struct Span {
  SteadyClock::time_point begin, end;
  double flops = 0;
};

/// Of one repetition.
double gflops_of(const std::vector<Span>& spans) {
  auto begin = spans[0].begin, end = spans[0].end;
  double flops = 0;
  for (const Span& span : spans) {
    begin = std::min(begin, span.begin);
    end = std::max(end, span.end);
    flops += span.flops;
  }
  return flops / std::chrono::duration<double, std::nano>(end - begin).count();
}

}  // namespace

double best_gflops(int threads, const std::function<double(int)>& work) {
  std::vector<Span> spans(static_cast<size_t>(std::max(threads, 1)));
  double best = 0;
  const auto after_each = [&]() noexcept {
    if (spans[0].flops > 0) best = std::max(best, gflops_of(spans));
  };
  std::barrier together(static_cast<std::ptrdiff_t>(spans.size()), after_each);
  const auto run = [&](size_t thread) {
    Span& span = spans[thread];
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
      together.arrive_and_wait();
      span.begin = SteadyClock::now();
      span.flops = work(static_cast<int>(thread));
      span.end = SteadyClock::now();
    }
    together.arrive_and_wait();
  };
  std::vector<std::jthread> others;
  for (size_t i = 1; i < spans.size(); ++i) others.emplace_back(run, i);
  run(0);
  return best;
}

}  // namespace lagwise::bench
