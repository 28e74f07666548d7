#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "lagwise/data/formats/safetensors.h"
#include "lagwise/runtime/head_step.h"
#include "lagwise/runtime/plan.h"
#include "lagwise/runtime/state.h"
#include "lagwise/runtime/thread_pool.h"
#include "lagwise/runtime/weights.h"

namespace lagwise::runtime {

class Workspace;

/// A state and the token it is to take.
struct Row {
  State* state;
  int64_t token;
  bool wants_logits = true;
};

/// A trained decoder that `lagwise export` wrote, run without torch:
///
///     const auto model = Model::open("song.lagwise");
///     const auto state = model->start();
///     model->prefill(*state, prompt);
///     for (...) model->step(*state, choose(state->logits()));
///
/// It is never written to: several threads may use it at a time, each with states of its
/// own. The weights stay in the file, of which the system reads what is looked at.
///
/// However a text is split into calls, and whatever is computed beside it on however many
/// threads, the logits after it are the same to the bit, on one SIMD target.
class Model {
 public:
  /// Tokens of one text, or states, that go through the layers together.
  static constexpr int64_t kMostRows = 32;

  /// DataError: the file is not what it should be.
  static std::unique_ptr<Model> open(const std::string& file);
  /// The same in memory, which must outlive the model. `name`: for messages.
  static std::unique_ptr<Model> open(const std::string& name, data::Bytes bytes);
  ~Model();

  const Plan& plan() const { return plan_; }
  const StateLayout& layout() const { return layout_; }
  uint64_t fingerprint() const { return fingerprint_; }
  /// Of the file, by key: what its tokens stand for, where it came from; "": none.
  std::string text(const std::string& key) const;
  size_t weight_bytes() const { return weight_bytes_; }  ///< that a token reads
  int64_t most_positions() const { return layout_.most_positions(); }

  int threads() const { return pool_->threads(); }
  void set_threads(int threads);  ///< nobody may be using the model

  std::unique_ptr<State> start() const;

  /// Whether a state can take these tokens: of the vocabulary, and none beyond the last
  /// position.
  bool can_take(const State& state, std::span<const int64_t> tokens) const;

  // Each requires that its states are of this model and can_take its tokens.

  void prefill(State& state, std::span<const int64_t> tokens) const;
  void step(State& state, int64_t token) const;
  /// One token each of several different states.
  void step_many(std::span<State* const> states, std::span<const int64_t> tokens) const;

 private:
  friend class Pass;
  Model(const std::string& name, data::Safetensors tensors);
  void take(std::span<const Row> rows) const;

  data::Safetensors tensors_;
  Plan plan_;
  ModelWeights weights_;
  std::vector<LayerKinds> kinds_;
  StateLayout layout_;
  uint64_t fingerprint_ = 0;
  size_t weight_bytes_ = 0;
  std::unique_ptr<ThreadPool> pool_;

  std::unique_ptr<Workspace> take_workspace() const;
  void return_workspace(std::unique_ptr<Workspace> workspace) const;
  mutable std::mutex workspaces_mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> workspaces_;  // those not in use
};

}  // namespace lagwise::runtime
