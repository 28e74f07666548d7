#include "bench/runtime_cases.h"

#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>

#include <cstring>
#include <memory>

#include "bench/timing.h"
#include "lagwise/models/model.h"
#include "lagwise/runtime/thread_pool.h"
#include "lagwise/train/exported_model.h"

namespace lagwise::bench {
namespace {

constexpr kernels::WeightType kTypes[] = {
    kernels::WeightType::f32, kernels::WeightType::bf16, kernels::WeightType::int8};
constexpr int64_t kToken = 65;

ModelConfig model_of(int64_t dim, bool quick) {
  ModelConfig config;
  config.dim = dim, config.layers = dim > 64 ? 4 : 3, config.heads = dim > 64 ? 8 : 4;
  if (quick) config.layers = 1;
  config.feed_forward = 4 * dim;
  config.encoding = "rope:layout=half", config.attention = "linear:map=elu1";
  return config;
}

typedef uint64_t TwoNumbers __attribute__((vector_size(16)));

TwoNumbers at(const uint8_t* from) {
  TwoNumbers two;
  std::memcpy(&two, from, sizeof two);  // of any alignment: one load
  return two;
}

/// Reads bytes as fast as memory gives them: into four sums, so that none waits.
uint64_t read_all(const uint8_t* from, size_t bytes) {
  TwoNumbers a{}, b{}, c{}, d{};
  for (size_t i = 0; i + 64 <= bytes; i += 64)
    a ^= at(from + i), b ^= at(from + i + 16), c ^= at(from + i + 32),
        d ^= at(from + i + 48);
  a ^= b ^ c ^ d;
  return a[0] ^ a[1];
}

/// The bytes of a model, read by as many threads as compute with it.
class ReadLoop {
 public:
  ReadLoop(const LineVector<uint8_t>& bytes, int threads)
      : bytes_(bytes), pool_(threads), sums_(static_cast<size_t>(threads)) {}

  void run() {
    pool_.run([&](const runtime::ThreadPool::Part& part) {
      const auto size = static_cast<int64_t>(bytes_.size());
      const int64_t first = part.first(size), last = part.last(size);
      sums_[static_cast<size_t>(part.thread)] ^=
          read_all(bytes_.data() + first, static_cast<size_t>(last - first));
    });
  }
  double gigabytes() const { return 1e-9 * static_cast<double>(bytes_.size()); }

 private:
  const LineVector<uint8_t>& bytes_;
  runtime::ThreadPool pool_;
  std::vector<uint64_t> sums_;
};

/// A model of the runtime and texts that it writes.
struct Small {
  Small(const Model& from, kernels::WeightType type, int64_t batch, int threads)
      : made(open_in_memory(exported_model(from, {}, type))) {
    made.model->set_threads(threads);
    for (int64_t i = 0; i < batch; ++i) {
      texts.push_back(made.model->start());
      states.push_back(texts.back().get());
    }
    tokens.assign(static_cast<size_t>(batch), kToken);
  }
  void step() { made.model->step_many(states, tokens); }

  ModelInMemory made;
  std::vector<std::unique_ptr<runtime::State>> texts;
  std::vector<runtime::State*> states;
  std::vector<int64_t> tokens;
};

/// All sides of one model, batch and number of threads.
void measure(const RuntimePlan& plan, int64_t dim, int64_t batch, int threads,
             const std::function<void(const RuntimeRow&)>& on_row) {
  const c10::NoGradGuard no_graph;
  plan.progress("C = " + std::to_string(dim) + ", " + std::to_string(batch) + " texts");
  const std::shared_ptr<Model> model = make_model(model_of(dim, plan.quick));
  model->eval();
  const auto state = model->start(batch, {});
  const at::Tensor next = at::full({batch, 1}, kToken, at::kLong);
  std::vector<std::unique_ptr<Small>> smalls;
  std::vector<Side> sides = {{[&] {
                                set_blas_threads(1);  // as `lagwise generate` does
                                model->extend(*state, next);
                              },
                              threads}};
  for (const kernels::WeightType type : kTypes) {
    smalls.push_back(std::make_unique<Small>(*model, type, batch, threads));
    sides.push_back({[small = smalls.back().get()] { small->step(); }, threads});
  }
  ReadLoop read(smalls[0]->made.bytes, threads);
  sides.push_back({[&] { read.run(); }, threads});
  Patience patience{.least = 5, .most = 15, .repetition_ms = 10, .budget_ms = 300};
  if (plan.quick)
    patience = {.least = 1, .most = 2, .repetition_ms = 1, .budget_ms = 5};
  const std::vector<Times> times = time_apart(sides, patience);
  for (size_t i = 0; i < smalls.size(); ++i) {
    RuntimeRow row;
    row.weights = runtime::name_of(kTypes[i]);
    row.dim = dim, row.layers = model->config().layers, row.batch = batch;
    row.threads = threads;
    row.ours_ms = times[i + 1].median_ms, row.baseline_ms = times[0].median_ms;
    row.ratio = row.baseline_ms / row.ours_ms;
    row.weight_bytes = static_cast<double>(smalls[i]->made.model->weight_bytes());
    row.read_gbps = read.gigabytes() / (1e-3 * times.back().median_ms);
    row.fraction = 1e-9 * row.weight_bytes / (1e-3 * row.ours_ms) / row.read_gbps;
    on_row(row);
  }
}

}  // namespace

void run_runtime_cases(const RuntimePlan& plan,
                       const std::function<void(const RuntimeRow&)>& on_row) {
  set_threads(plan.threads);
  for (const int64_t dim : {64, 512})
    for (const int64_t batch : {1, 16})
      measure(plan, dim, batch, dim > 64 ? plan.threads : 1, on_row);
}

}  // namespace lagwise::bench
