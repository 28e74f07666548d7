#include "lagwise/runtime/model.h"

#include <algorithm>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/runtime/pass.h"

namespace lagwise::runtime {
namespace {

Plan plan_of(const std::string& file, const data::Safetensors& tensors) {
  const auto text = tensors.metadata().find("plan");
  if (text == tensors.metadata().end())
    throw DataError(file, -1, "a model as `lagwise export` writes it");
  return read_plan(file, text->second);
}

size_t bytes_of(const Dense& dense) {
  const auto numbers =
      static_cast<size_t>(dense.w.panels() * kernels::kPanelOutputs * dense.w.cols);
  switch (dense.w.type) {
    case kernels::WeightType::f32:
      return 4 * numbers;
    case kernels::WeightType::bf16:
      return 2 * numbers;
    case kernels::WeightType::int8:
      return numbers + numbers / 16;
  }
  return 0;
}

size_t bytes_of(const ModelWeights& weights) {
  size_t sum = bytes_of(weights.head);
  for (const LayerWeights& layer : weights.layers)
    for (const Dense* each :
         {&layer.mixed, &layer.gates, &layer.out, &layer.feed_in, &layer.feed_out})
      sum += bytes_of(*each);
  return sum;
}

}  // namespace

Model::Model(const std::string& name, data::Safetensors tensors)
    : tensors_(std::move(tensors)),
      plan_(plan_of(name, tensors_)),
      weights_(read_weights(name, tensors_, plan_)),
      layout_(plan_),
      weight_bytes_(bytes_of(weights_)) {
  fingerprint_ =
      data::fnv1a(data::bytes_of(text("fingerprint") + tensors_.metadata().at("plan")));
  for (const OneTokenLayer& layer : plan_.one.layers) kinds_.emplace_back(plan_, layer);
  set_threads(1);
}

Model::~Model() = default;

std::unique_ptr<Model> Model::open(const std::string& file) {
  return std::unique_ptr<Model>(new Model(file, data::Safetensors(file)));
}

std::unique_ptr<Model> Model::open(const std::string& name, data::Bytes bytes) {
  return std::unique_ptr<Model>(new Model(name, data::Safetensors(name, bytes)));
}

std::string Model::text(const std::string& key) const {
  const auto found = tensors_.metadata().find(key);
  return found == tensors_.metadata().end() ? "" : found->second;
}

void Model::set_threads(int threads) {
  pool_ = std::make_unique<ThreadPool>(std::max(1, threads));
  workspaces_.clear();
  return_workspace(take_workspace());
}

std::unique_ptr<State> Model::start() const {
  return std::make_unique<State>(layout_, fingerprint_);
}

bool Model::can_take(const State& state, std::span<const int64_t> tokens) const {
  const auto in_vocabulary = [&](int64_t token) {
    return token >= 0 && token < plan_.vocabulary;
  };
  return static_cast<int64_t>(tokens.size()) <= most_positions() - state.position() &&
         std::all_of(tokens.begin(), tokens.end(), in_vocabulary);
}

std::unique_ptr<Workspace> Model::take_workspace() const {
  {
    const std::lock_guard lock(workspaces_mutex_);
    if (!workspaces_.empty()) {
      auto workspace = std::move(workspaces_.back());
      workspaces_.pop_back();
      return workspace;
    }
  }
  return std::make_unique<Workspace>(plan_, kinds_, threads());
}

void Model::return_workspace(std::unique_ptr<Workspace> workspace) const {
  const std::lock_guard lock(workspaces_mutex_);
  workspaces_.push_back(std::move(workspace));
}

/// Whoever finds the threads busy computes alone.
void Model::take(std::span<const Row> rows) const {
  const std::unique_lock threads(pool_->mutex, std::try_to_lock);
  const bool alone = !threads.owns_lock() || pool_->threads() == 1;
  auto workspace = take_workspace();
  Pass(*this, *workspace, alone ? nullptr : pool_.get()).run(rows);
  return_workspace(std::move(workspace));
}

void Model::prefill(State& state, std::span<const int64_t> tokens) const {
  Row rows[kMostRows];
  for (size_t begin = 0; begin < tokens.size(); begin += kMostRows) {
    const size_t count = std::min<size_t>(kMostRows, tokens.size() - begin);
    for (size_t i = 0; i < count; ++i)
      rows[i] = {&state, tokens[begin + i], begin + i + 1 == tokens.size()};
    take({rows, count});
  }
}

void Model::step(State& state, int64_t token) const {
  const Row row{&state, token};
  take({&row, 1});
}

void Model::step_many(std::span<State* const> states,
                      std::span<const int64_t> tokens) const {
  Row rows[kMostRows];
  for (size_t begin = 0; begin < states.size(); begin += kMostRows) {
    const size_t count = std::min<size_t>(kMostRows, states.size() - begin);
    for (size_t i = 0; i < count; ++i) rows[i] = {states[begin + i], tokens[begin + i]};
    take({rows, count});
  }
}

}  // namespace lagwise::runtime
