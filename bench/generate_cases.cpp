#include "bench/generate_cases.h"

#include <ATen/ops/randint.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "bench/plain_model.h"
#include "bench/timing.h"

namespace lagwise::bench {
namespace {

constexpr int64_t kSines = 5, kFeatures = 64;

ModelConfig model_of(const std::string& encoding, const std::string& attention,
                     bool quick) {
  ModelConfig config;
  config.layers = 4, config.dim = 512, config.heads = 8, config.feed_forward = 2048;
  if (quick) config.layers = 2, config.dim = 64, config.feed_forward = 256;
  config.encoding = encoding, config.attention = attention;
  return config;
}

std::string sine_spe() {
  return "sine_spe:sines=" + std::to_string(kSines) +
         ",realizations=" + std::to_string(kFeatures) + ",gated=true";
}

/// A model that has read `context` tokens and takes one more a call.
class Reader {
 public:
  Reader(const ModelConfig& config, int64_t context)
      : model_(make_model(config)),
        state_(model_->start(1, {})),
        next_(at::randint(config.vocabulary, {1, 1}, at::kLong)) {
    constexpr int64_t kChunk = 1024;
    for (int64_t begin = 0; begin < context; begin += kChunk)
      model_->extend(*state_,
                     at::randint(config.vocabulary,
                                 {1, std::min(kChunk, context - begin)}, at::kLong));
  }

  std::vector<at::Tensor> step() { return {model_->extend(*state_, next_)}; }

 private:
  std::shared_ptr<Model> model_;
  std::unique_ptr<DecodingState> state_;
  at::Tensor next_;
};

Call reader(const ModelConfig& config, int64_t context) {
  const auto made = std::make_shared<Reader>(config, context);
  return [made] { return made->step(); };
}

/// Reads the whole context for every token.
Call recomputer(const ModelConfig& config, int64_t context) {
  const std::shared_ptr<Model> model = make_model(plain_model(config));
  model->eval();
  Batch batch;
  batch.tokens = at::randint(config.vocabulary, {1, context}, at::kLong);
  return [model, batch]() -> std::vector<at::Tensor> {
    const c10::NoGradGuard no_graph;
    return {model->logits(batch, {}).select(1, -1).clone()};
  };
}

/// Of one token: dense layers, the codes of queries and keys, the state.
double step_gflop(const ModelConfig& config) {
  const auto c = static_cast<double>(config.dim), v = double(config.vocabulary);
  const auto f = static_cast<double>(config.feed_forward), h = double(config.heads);
  const double d = c / h;
  const double dense = 2 * (4 * c * c + 2 * c * f);
  const double codes = 2 * h * 2 * (2 * kSines + 1) * d * kFeatures;
  const double state = 4 * h * kFeatures * d;
  return 1e-9 *
         (static_cast<double>(config.layers) * (dense + codes + state) + 2 * c * v);
}

}  // namespace

std::vector<BenchRow> run_generate_cases(const GeneratePlan& plan) {
  set_blas_threads(plan.threads);
  set_threads(plan.threads);
  Comparer comparer(plan.quick, plan.progress);
  std::vector<int64_t> contexts = plan.contexts;
  if (plan.quick) contexts = {64, 256};
  const std::string table = "huang:max=" + std::to_string(2 * contexts.back() + 4096);
  const ModelConfig ours = model_of(sine_spe(), "linear:map=elu1", plan.quick);
  for (const int64_t n : contexts) {
    plan.progress("reading " + std::to_string(n) + " tokens");
    const auto state_of = [&](const char* name, const std::string& encoding,
                              const std::string& attention) {
      return Baseline{name, reader(model_of(encoding, attention, plan.quick), n),
                      plan.threads};
    };
    Comparison c;
    c.name = "generate", c.direction = "step";
    c.shape = {n, ours.heads, kFeatures, ours.dim / ours.heads};
    c.threads = plan.threads;
    c.ours = reader(ours, n);
    c.baselines = {state_of("linear rope", "rope:layout=half", "linear:map=elu1"),
                   state_of("exact rope", "rope:layout=half", "exact"),
                   state_of("exact huang", table, "exact"),
                   {"recompute", recomputer(ours, n), plan.threads}};
    c.gflop = step_gflop(ours);
    comparer.measure(c);
  }
  return comparer.rows();
}

}  // namespace lagwise::bench
