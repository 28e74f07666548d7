#include "bench/train_cases.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "bench/crossover.h"
#include "bench/fma_peak.h"
#include "bench/memory.h"
#include "bench/plain_model.h"
#include "bench/timing.h"
#include "lagwise/core/machine.h"
#include "lagwise/train/adamw.h"

namespace lagwise::bench {
namespace {

constexpr int64_t kSines = 5, kWidth = 64;

/// A model in training. Every step draws new noise, as training does.
class Trainee {
 public:
  Trainee(const ModelConfig& config, const Batch& batch)
      : model_(make_model(config)),
        optimiser_(trained_parameters(*model_)),
        batch_(batch) {
    model_->train();
  }

  void step() {
    ++draw_.step;
    const Loss loss = model_->loss(batch_, draw_);
    optimiser_.forget_gradients();
    (loss.sum / static_cast<double>(loss.count)).backward();
    optimiser_.update({}, draw_.step, 1e-4,
                      1 / std::max(1.0, optimiser_.gradient_norm()));
  }

  /// The first step; returns what it needs beside parameters and the optimiser's state.
  int64_t warm_up() {
    return extra_bytes([this]() -> std::vector<at::Tensor> {
      step();
      return {};
    });
  }

 private:
  std::shared_ptr<Model> model_;
  AdamW optimiser_;
  Batch batch_;
  Draw draw_;
};

Batch random_batch(int64_t batch, int64_t n, int64_t vocabulary) {
  Batch made;
  made.tokens = at::randint(vocabulary, {batch, n}, at::kLong);
  made.targets = at::randint(vocabulary, {batch, n}, at::kLong);
  return made;
}

/// How a side's threads are set: OpenBLAS has a pool of its own.
struct Threads {
  int aten, blas;
  void set() const { set_threads(aten), set_blas_threads(blas); }
};

double seconds_of(Trainee& trainee, const Threads& threads) {
  threads.set();
  const auto begin = std::chrono::steady_clock::now();
  trainee.step();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return 0.5 * (x[(x.size() - 1) / 2] + x[x.size() / 2]);
}

class TrainBench {
 public:
  explicit TrainBench(const TrainPlan& plan) : plan_(plan) {}

  std::vector<BenchRow> run() {
    measure(small_bench_model(plan_.quick ? 64 : 256), 16, plan_.quick ? 64 : 256, 1,
            "small");
    for (const int64_t n : plan_.lengths)
      measure(bench_model(n), 4, plan_.quick ? n / 16 : n, plan_.threads, "base");
    return rows_;
  }

 private:
  void measure(const ModelConfig& config, int64_t batch, int64_t n, int threads,
               const std::string& name) {
    const std::string what = name + " decoder_lm, " + std::to_string(config.layers) +
                             " layers, C = " + std::to_string(config.dim) + ", " +
                             config.encoding;
    plan_.progress(what + ", N = " + std::to_string(n));
    BenchRow row;
    row.name = what, row.direction = "training step";
    row.n = n, row.heads = config.heads, row.d = kWidth,
    row.e = config.dim / config.heads, row.batch = batch, row.threads = threads;
    row.baseline = "materialised";

    const Batch data = random_batch(batch, n, config.vocabulary);
    Trainee ours(config, data);
    const Threads our_threads{threads, 1};
    our_threads.set();
    row.extra_bytes = ours.warm_up();
    const int64_t needed = plain_step_bytes(config, batch, n) + row.extra_bytes;
    const int64_t there = plan_.most_bytes > 0 ? plan_.most_bytes : free_bytes();
    if (needed > there) {
      row.note = "the baseline needs at least " + human_bytes(needed) + ", " +
                 human_bytes(there) + " are free";
      time(row, ours, our_threads);
    } else {
      Trainee theirs(plain_model(config), data);
      Threads{threads, threads}.set();
      row.baseline_bytes = theirs.warm_up();
      time(row, ours, our_threads, &theirs, best_threads(theirs, threads));
    }
    row.gflops = 1e-9 * matrix_flops(config) * static_cast<double>(batch * n) /
                 (row.ours_ms * 1e-3);
    row.peak_gflops = peak(threads);
    row.fraction = row.gflops / row.peak_gflops;
    rows_.push_back(row);
    plan_.row(row);
  }

  /// Plain torch has both pools on all cores, but they may hinder each other: the
  /// baseline gets what was the better setting at the first length.
  Threads best_threads(Trainee& theirs, int threads) {
    const auto known = best_.find(threads);
    if (known != best_.end()) return known->second;
    const Threads both{threads, threads}, one_pool{threads, 1};
    const bool better =
        threads == 1 || seconds_of(theirs, both) <= seconds_of(theirs, one_pool);
    return best_[threads] = better ? both : one_pool;
  }

  /// In turn, so that a slow moment of the machine falls on both.
  void time(BenchRow& row, Trainee& ours, Threads our_threads,
            Trainee* theirs = nullptr, Threads their_threads = {}) {
    std::vector<double> our_seconds, their_seconds;
    double spent = 0;
    const size_t most = plan_.quick ? 1 : 5;
    while (our_seconds.empty() ||
           (our_seconds.size() < most && spent < plan_.longest_seconds)) {
      our_seconds.push_back(seconds_of(ours, our_threads));
      spent += our_seconds.back();
      if (theirs == nullptr) continue;
      their_seconds.push_back(seconds_of(*theirs, their_threads));
      spent += their_seconds.back();
    }
    row.ours_ms = 1e3 * median(our_seconds);
    if (theirs == nullptr) return;
    row.baseline_ms = 1e3 * median(their_seconds);
    row.ratio = row.baseline_ms / row.ours_ms;
  }

  /// The roof only rises, as in comparison.h.
  double peak(int threads) {
    double& best = peaks_[threads];
    return best = std::max(best, fma_peak_gflops(threads));
  }

  const TrainPlan& plan_;
  std::map<int, double> peaks_;
  std::map<int, Threads> best_;  // of the baseline
  std::vector<BenchRow> rows_;
};

}  // namespace

ModelConfig bench_model(int64_t n) {
  ModelConfig config;
  config.layers = 4, config.dim = 512, config.heads = 8, config.feed_forward = 2048;
  config.encoding = "sine_spe:sines=" + std::to_string(kSines) +
                    ",realizations=" + std::to_string(kWidth) + ",gated=true";
  config.attention = "linear:map=elu1";
  config.length = n;
  return config;
}

ModelConfig small_bench_model(int64_t n) {
  ModelConfig config = bench_model(n);
  config.layers = 3, config.dim = 64, config.heads = 4, config.feed_forward = 256;
  return config;
}

double matrix_flops(const ModelConfig& config) {
  const auto c = static_cast<double>(config.dim), v = double(config.vocabulary);
  const auto f = static_cast<double>(config.feed_forward), h = double(config.heads);
  const double d = c / h, r = kWidth;
  const double dense = 6 * (4 * c * c + 2 * c * f);
  const double spe = 2 * h * 2 * 2 * (2 * kSines + 1) * d * r;
  const double attention = 14 * h * r * d;
  return static_cast<double>(config.layers) * (dense + spe + attention) + 6 * c * v;
}

std::vector<BenchRow> run_train_cases(const TrainPlan& plan) {
  return TrainBench(plan).run();
}

}  // namespace lagwise::bench
