#include "bench/generate_cases.h"

#include <ATen/ops/randint.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "bench/memory.h"
#include "bench/plain_model.h"
#include "bench/timing.h"
#include "lagwise/models/model.h"

namespace lagwise::bench {
namespace {

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
         ",realizations=" + std::to_string(kRealizations) + ",gated=true";
}

/// A model that reads on to ever longer contexts, and takes one token more a call. As
/// in `lagwise generate`, OpenBLAS has one thread: dense layers share their rows out
/// themselves, and a pool of its own would spin beside ours.
class Reader {
 public:
  explicit Reader(const ModelConfig& config)
      : model_(make_model(config)),
        state_(model_->start(1, {})),
        next_(at::randint(config.vocabulary, {1, 1}, at::kLong)) {
    model_->eval();
  }

  void read_to(int64_t context) {
    constexpr int64_t kChunk = 1024;
    const c10::NoGradGuard no_graph;
    set_blas_threads(1);
    const int64_t vocabulary = model_->config().vocabulary;
    while (taken_ < context) {
      const int64_t count = std::min(kChunk, context - taken_);
      model_->extend(*state_, at::randint(vocabulary, {1, count}, at::kLong));
      taken_ += count;
    }
  }

  std::vector<at::Tensor> step() {
    const c10::NoGradGuard no_graph;
    set_blas_threads(1);
    ++taken_;
    return {model_->extend(*state_, next_)};
  }

 private:
  std::shared_ptr<Model> model_;
  std::unique_ptr<DecodingState> state_;
  at::Tensor next_;
  int64_t taken_ = 0;
};

struct NamedReader {
  std::string name;
  std::shared_ptr<Reader> reader;
  Call call() const {
    return [reader = reader] { return reader->step(); };
  }
};

/// Reads the whole context for every token, with so many threads of OpenBLAS.
Call recomputer(const ModelConfig& config, int64_t context, int threads) {
  const std::shared_ptr<Model> model = make_model(plain_model(config));
  model->eval();
  Batch batch;
  batch.tokens = at::randint(config.vocabulary, {1, context}, at::kLong);
  return [model, batch, threads]() -> std::vector<at::Tensor> {
    const c10::NoGradGuard no_graph;
    set_blas_threads(threads);
    return {model->logits(batch, {}).select(1, -1).clone()};
  };
}

/// The faster number of them: all, or one where a pool beside ATen's only spins.
int faster_threads(const ModelConfig& config, int64_t context, int threads) {
  int best = 1;
  double least = 0;
  for (const int each : {threads, 1}) {
    const Call call = recomputer(config, context, each);
    const double ms =
        time_apart({{call, threads}}, {.least = 1, .most = 1, .repetition_ms = 1})[0]
            .best_ms;
    if (least == 0 || ms < least) least = ms, best = each;
  }
  return best;
}

/// That this takes: codes of queries and keys as [N, H, D, R], gated, and a product.
int64_t recomputing_bytes(const ModelConfig& config, int64_t context) {
  return 5 * context * config.dim * kRealizations * int64_t{sizeof(float)};
}

/// Of one token: dense layers, the codes of queries and keys, the state.
double step_gflop(const ModelConfig& config) {
  const auto c = static_cast<double>(config.dim), v = double(config.vocabulary);
  const auto f = static_cast<double>(config.feed_forward), h = double(config.heads);
  const double d = c / h;
  const double dense = 2 * (4 * c * c + 2 * c * f);
  const double codes = 2 * h * 2 * (2 * kSines + 1) * d * kRealizations;
  const double state = 4 * h * kRealizations * d;
  return 1e-9 *
         (static_cast<double>(config.layers) * (dense + codes + state) + 2 * c * v);
}

/// One run over all contexts.
class Run {
 public:
  explicit Run(const GeneratePlan& plan)
      : plan_(plan),
        contexts_(plan.quick ? std::vector<int64_t>{64, 256} : plan.contexts),
        ours_(model_of(sine_spe(), "linear:map=elu1", plan.quick)),
        comparer_(plan.quick, manner()) {
    std::sort(contexts_.begin(), contexts_.end());
  }

  std::vector<BenchRow> run() {
    if (wanted("linear") || wanted("exact") || wanted("recompute")) over_contexts();
    if (wanted("constant")) constant();
    return std::move(rows_);
  }

 private:
  Manner manner() {
    Manner manner;
    manner.progress = plan_.progress;
    manner.time = time_apart;  // recomputing wakes threads of BLAS, which then spin
    manner.patience = {.least = 3, .most = 8, .repetition_ms = 6, .budget_ms = 60};
    manner.on_row = [this](BenchRow row) {
      row.note = note_;
      if (row.baseline == "recompute" && note_.empty())
        recompute_ms_ = row.baseline_ms / static_cast<double>(row.n);
      rows_.push_back(row);
      plan_.on_row(row);
    };
    return manner;
  }

  bool wanted(const char* group) const {
    return plan_.only.empty() || plan_.only == group;
  }

  NamedReader reader(const char* name, const std::string& encoding,
                     const std::string& attention) const {
    return {name, std::make_shared<Reader>(model_of(encoding, attention, plan_.quick))};
  }

  void read(const NamedReader& by, int64_t context) const {
    plan_.progress(by.name + " reads " + std::to_string(context) + " tokens");
    by.reader->read_to(context);
  }

  /// Ours after `context` tokens; the baselines are still to be named.
  Comparison comparison(const char* group, int64_t context, const NamedReader& ours) {
    Comparison c;
    c.name = group, c.direction = "step";
    c.shape = {context, ours_.heads, kRealizations, ours_.dim / ours_.heads};
    c.threads = plan_.threads;
    c.ours = ours.call();
    c.gflop = step_gflop(ours_);
    return c;
  }

  void over_contexts() {
    struct Group {
      const char* name;
      std::vector<NamedReader> readers;
    };
    std::vector<Group> groups;
    const std::string linear = "linear:map=elu1", half = "rope:layout=half";
    const std::string table = "huang:max=" + std::to_string(contexts_.back() + 4096);
    if (wanted("linear"))
      groups.push_back({"linear",
                        {reader("linear rope", half, linear),
                         reader("linear conv_spe", "conv_spe", linear)}});
    if (wanted("exact"))
      groups.push_back({"exact",
                        {reader("exact rope", half, "exact"),
                         reader("exact huang", table, "exact")}});
    const NamedReader ours = reader("linear sine_spe", sine_spe(), linear);
    for (const int64_t n : contexts_) {
      read(ours, n);
      for (const Group& group : groups) {
        Comparison c = comparison(group.name, n, ours);
        for (const NamedReader& each : group.readers) {
          read(each, n);
          c.baselines.push_back({each.name, each.call(), plan_.threads});
        }
        comparer_.measure(c);
      }
      if (wanted("recompute")) recompute(n, ours);
    }
  }

  /// The longest context up to n whose recomputation can be waited for.
  int64_t affordable(int64_t n) const {
    const int64_t bytes = plan_.most_bytes > 0 ? plan_.most_bytes : free_bytes() / 2;
    while (n > 1 && (recomputing_bytes(ours_, n) > bytes ||
                     recompute_ms_ * static_cast<double>(n) > plan_.longest_ms))
      n /= 2;
    return n;
  }

  void recompute(int64_t n, const NamedReader& ours) {
    const int64_t made = affordable(n);
    if (blas_threads_ == 0) blas_threads_ = faster_threads(ours_, made, plan_.threads);
    const double times = static_cast<double>(n) / static_cast<double>(made);
    if (made < n)
      note_ = "estimated: as many times as long as a context of " +
              std::to_string(made) + " tokens takes; " + std::to_string(n) +
              " would take too long or too much memory";
    Comparison c = comparison("recompute", n, ours);
    c.baselines = {{.name = "recompute",
                    .call = recomputer(ours_, made, blas_threads_),
                    .threads = plan_.threads,
                    .times = times,
                    .weigh = false}};
    comparer_.measure(c);
    note_.clear();
  }

  /// Ours late in a text against itself early in another.
  void constant() {
    const int64_t early = plan_.quick ? 10 : 100, late = plan_.quick ? 200 : 20000;
    const std::string name = "at " + std::to_string(early);
    const NamedReader before = reader(name.c_str(), sine_spe(), "linear:map=elu1"),
                      after = reader("linear sine_spe", sine_spe(), "linear:map=elu1");
    read(before, early);
    read(after, late);
    Comparison c = comparison("constant", late, after);
    c.baselines = {{before.name, before.call(), plan_.threads}};
    comparer_.measure(c);
  }

  const GeneratePlan& plan_;
  std::vector<int64_t> contexts_;
  ModelConfig ours_;
  int blas_threads_ = 0;     // of recomputing; 0: not chosen yet
  double recompute_ms_ = 0;  // a token of context, as last measured; 0: not yet
  std::string note_;         // of the rows being measured
  std::vector<BenchRow> rows_;
  Comparer comparer_;
};

}  // namespace

std::vector<BenchRow> run_generate_cases(const GeneratePlan& plan) {
  set_threads(plan.threads);
  return Run(plan).run();
}

}  // namespace lagwise::bench
