#include "bench/train_cases.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "bench/crossover.h"
#include "bench/expert_model.h"
#include "bench/floors.h"
#include "bench/fma_peak.h"
#include "bench/gemm_rate.h"
#include "bench/memory.h"
#include "bench/plain_model.h"
#include "bench/timing.h"
#include "lagwise/core/machine.h"
#include "lagwise/core/spec.h"
#include "lagwise/ops/precision.h"
#include "lagwise/ops/recompute.h"
#include "lagwise/train/adamw.h"

namespace lagwise::bench {
namespace {

/// What is differentiated: the mean loss of a batch, or their sum and how many there are,
/// as the trainer has it. Every step draws new noise, as training does.
struct StepLoss {
  at::Tensor loss;
  double count = 1;  ///< gradients are divided by it
};
using LossOfDraw = std::function<StepLoss(const Draw&)>;

/// A model in training: ours or a baseline, with the same optimiser.
class Trainee {
 public:
  Trainee(LossOfDraw loss, std::vector<NamedTensor> parameters)
      : loss_(std::move(loss)), optimiser_(std::move(parameters)) {}

  void step() {
    ++draw_.step;
    const StepLoss found = loss_(draw_);
    optimiser_.forget_gradients();
    found.loss.backward();
    const double norm = optimiser_.gradient_norm() / found.count;
    optimiser_.update({}, draw_.step, 1e-4, 1 / std::max(1.0, norm) / found.count);
  }

  /// The first step; returns what it needs beside parameters and the optimiser's state.
  int64_t warm_up() {
    return extra_bytes([this]() -> std::vector<at::Tensor> {
      step();
      return {};
    });
  }

 private:
  LossOfDraw loss_;
  AdamW optimiser_;
  Draw draw_;
};

Trainee model_trainee(const ModelConfig& config, const Batch& batch,
                      ops::Precision precision = ops::Precision::full,
                      bool recompute = false) {
  const std::shared_ptr<Model> model = make_model(config);
  model->train();
  const auto loss = [model, batch, precision, recompute](const Draw& draw) -> StepLoss {
    const ops::WithPrecision here(precision);
    const ops::WithRecompute less(recompute);
    const Loss sum = model->loss(batch, draw);
    return {sum.sum, static_cast<double>(sum.count)};
  };
  return {loss, trained_parameters(*model)};
}

Trainee expert_trainee(const ModelConfig& config, const Batch& batch) {
  const auto model = std::make_shared<ExpertModel>(*make_model(config));
  return {[model, batch](const Draw&) -> StepLoss { return {model->loss(batch)}; },
          model->parameters()};
}

/// What ours is timed against, and in which precision ours then is.
struct Rival {
  const char* name;
  Trainee (*make)(const ModelConfig& config, const Batch& batch);
  int64_t (*bytes)(const ModelConfig& config, int64_t batch, int64_t n);
  ops::Precision ours = ops::Precision::full;
};

constexpr Rival kMaterialised = {"materialised",
                                 [](const ModelConfig& config, const Batch& batch) {
                                   return model_trainee(plain_model(config), batch);
                                 },
                                 plain_step_bytes};
constexpr Rival kTorchChunked = {"torch_chunked", expert_trainee, expert_step_bytes};
constexpr Rival kFull = {"f32",
                         [](const ModelConfig& config, const Batch& batch) {
                           return model_trainee(config, batch);
                         },
                         expert_step_bytes, ops::Precision::bf16};

bool is_spe(const ModelConfig& config) {
  return Spec(config.encoding).name() == "sine_spe";
}

/// What a head's queries and keys are as wide as when attention sees them.
int64_t feature_width(const ModelConfig& config) {
  return is_spe(config) ? kRealizations : config.key_width();
}

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
    const int64_t few = plan_.quick ? 64 : 256;
    measure_both(small_bench_model(few), 16, few, 1, "small");
    for (const int64_t n : plan_.lengths)
      measure_both(bench_model(n), 4, plan_.quick ? n / 16 : n, plan_.threads, "base");
    return rows_;
  }

 private:
  void measure_both(const ModelConfig& config, int64_t batch, int64_t n, int threads,
                    const std::string& name) {
    const auto wanted = [&](const char* which) {
      return plan_.only.empty() || plan_.only == which;
    };
    if (wanted("sine_spe")) measure(config, kMaterialised, batch, n, threads, name);
    if (wanted("rope"))
      measure(with_rope(config), kTorchChunked, batch, n, threads, name);
    if (wanted("bf16")) measure(with_rope(config), kFull, batch, n, threads, name);
  }

  void measure(const ModelConfig& config, const Rival& rival, int64_t batch, int64_t n,
               int threads, const std::string& name) {
    const std::string what = name + " decoder_lm, " + std::to_string(config.layers) +
                             " layers, C = " + std::to_string(config.dim) + ", " +
                             config.encoding;
    plan_.progress(what + ", N = " + std::to_string(n));
    BenchRow row;
    const bool rounds = rival.ours == ops::Precision::bf16;
    row.name = what + (plan_.recompute ? ", recompute" : "");
    row.direction = rounds ? "training step, bf16" : "training step";
    row.n = n, row.heads = config.heads, row.d = feature_width(config),
    row.e = config.dim / config.heads, row.batch = batch, row.threads = threads;
    row.baseline = rival.name;

    const double gflop = 1e-9 * matrix_flops(config) * static_cast<double>(batch * n);
    const Batch data = random_batch(batch, n, config.vocabulary);
    Trainee ours = model_trainee(config, data, rival.ours, plan_.recompute);
    const Threads our_threads{threads, 1};
    our_threads.set();
    row.extra_bytes = ours.warm_up();
    const int64_t needed = rival.bytes(config, batch, n) + row.extra_bytes;
    const int64_t there = plan_.most_bytes > 0 ? plan_.most_bytes : free_bytes();
    if (needed > there) {
      row.note = "the baseline needs at least " + human_bytes(needed) + ", " +
                 human_bytes(there) + " are free";
      time(row, ours, our_threads);
    } else {
      Trainee theirs = rival.make(config, data);
      Threads{threads, threads}.set();
      row.baseline_bytes = theirs.warm_up();
      const double best_ms =
          time(row, ours, our_threads, &theirs, best_threads(theirs, rival, threads));
      check(row, gflop, best_ms);
    }
    row.gflops = gflop / (row.ours_ms * 1e-3);
    row.peak_gflops = peak(threads);
    row.fraction = row.gflops / row.peak_gflops;
    rows_.push_back(row);
    plan_.row(row);
  }

  /// Plain torch has both pools on all cores, but they may hinder each other: the
  /// baseline gets what was the better setting at the first length, in the better of
  /// two steps each.
  Threads best_threads(Trainee& theirs, const Rival& rival, int threads) {
    const auto key = std::pair(std::string(rival.name), threads);
    const auto known = best_.find(key);
    if (known != best_.end()) return known->second;
    const Threads both{threads, threads}, one_pool{threads, 1};
    if (threads == 1) return best_[key] = both;
    const auto seconds = [&](const Threads& setting) {
      return std::min(seconds_of(theirs, setting), seconds_of(theirs, setting));
    };
    return best_[key] = seconds(both) <= seconds(one_pool) ? both : one_pool;
  }

  void check(BenchRow& row, double gflop, double best_ms) {
    const auto floor = floor_share(
        {row.baseline, row.direction, row.n, row.heads, row.d, row.e, row.threads});
    if (!floor) return;
    double& gemm = gemms_[row.threads];  // the best so far, as of the peak
    gemm = std::max(gemm, gemm_gflops(row.threads));
    row.floor = check_floor(*floor, gflop, best_ms, gemm);
    row.weak_baseline = row.floor.weak();
  }

  /// In turn, so that a slow moment of the machine falls on both. Returns the
  /// baseline's best.
  double time(BenchRow& row, Trainee& ours, Threads our_threads,
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
    if (theirs == nullptr) return 0;
    row.baseline_ms = 1e3 * median(their_seconds);
    row.ratio = row.baseline_ms / row.ours_ms;
    return 1e3 * *std::min_element(their_seconds.begin(), their_seconds.end());
  }

  /// The roof only rises, as in comparison.h.
  double peak(int threads) {
    double& best = peaks_[threads];
    return best = std::max(best, fma_peak_gflops(threads));
  }

  const TrainPlan& plan_;
  std::map<int, double> peaks_, gemms_;
  std::map<std::pair<std::string, int>, Threads> best_;  // of baselines
  std::vector<BenchRow> rows_;
};

}  // namespace

ModelConfig bench_model(int64_t n) {
  ModelConfig config;
  config.layers = 4, config.dim = 512, config.heads = 8, config.feed_forward = 2048;
  config.encoding = "sine_spe:sines=" + std::to_string(kSines) +
                    ",realizations=" + std::to_string(kRealizations) + ",gated=true";
  config.attention = "linear:map=elu1";
  config.length = n;
  return config;
}

ModelConfig small_bench_model(int64_t n) {
  ModelConfig config = bench_model(n);
  config.layers = 3, config.dim = 64, config.heads = 4, config.feed_forward = 256;
  return config;
}

ModelConfig with_rope(ModelConfig config) {
  config.encoding = kExpertEncoding, config.attention = kExpertAttention;
  return config;
}

double matrix_flops(const ModelConfig& config) {
  const auto c = static_cast<double>(config.dim), v = double(config.vocabulary);
  const auto f = static_cast<double>(config.feed_forward), h = double(config.heads);
  const double d = c / h, r = double(feature_width(config));
  const double dense = 6 * (4 * c * c + 2 * c * f);
  const double spe = !is_spe(config) ? 0 : 2 * h * 2 * 2 * (2 * kSines + 1) * d * r;
  const double attention = 14 * h * r * d;
  return static_cast<double>(config.layers) * (dense + spe + attention) + 6 * c * v;
}

std::vector<BenchRow> run_train_cases(const TrainPlan& plan) {
  return TrainBench(plan).run();
}

}  // namespace lagwise::bench
