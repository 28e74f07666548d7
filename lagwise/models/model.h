#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lagwise/core/one_token.h"
#include "lagwise/core/spec.h"
#include "lagwise/models/batch.h"
#include "lagwise/models/model_config.h"
#include "lagwise/ops/encoded.h"

namespace lagwise {

/// What a model remembers between calls: constant in size with linear attention, a
/// cache that grows with exact attention.
class DecodingState {
 public:
  virtual ~DecodingState() = default;
  virtual int64_t bytes() const = 0;  ///< that it occupies

  /// Sequence b becomes what sequence order[b] was, int64 [B]; one may be taken often, or
  /// not at all.
  virtual void reorder(const at::Tensor& order) = 0;
};

/// A transformer. Parameters are named like layers.0.attn.q_proj.weight; those of
/// encodings pos.* and layers.0.attn.pos.*.
class Model : public torch::nn::Module {
 public:
  explicit Model(ModelConfig config) : config_(std::move(config)) {}
  const ModelConfig& config() const { return config_; }

  /// Logits [B, N, V] or [B, classes]. `draw`: the moment of dropout and noise.
  virtual at::Tensor logits(const Batch& batch, const Draw& draw) = 0;

  /// Cross entropy of `logits` against the targets.
  Loss loss(const Batch& batch, const Draw& draw);

  /// What it does with one token, as data (core/one_token.h), for lagwise/runtime.
  /// std::invalid_argument where it cannot be said, with what can.
  virtual OneTokenModel one_token(const Draw& draw) const;

  // Decoding, for models that generate; others refuse with std::invalid_argument.
  // No gradient.

  /// A state before the first token. `source`: what an encoder_decoder listens to.
  virtual std::unique_ptr<DecodingState> start(int64_t batch, const Draw& draw,
                                               const Batch* source = nullptr);

  /// Takes tokens [B, N] (the first `lengths` of each row) and returns the logits
  /// [B, V] after the last of each. However the tokens are split into calls, the logits
  /// are the same.
  virtual at::Tensor extend(DecodingState& state, const at::Tensor& tokens,
                            const at::Tensor& lengths = {});

  /// The same with the logits of every row, [B, N, V]: loss along a long stream.
  virtual at::Tensor extend_all(DecodingState& state, const at::Tensor& tokens);

  /// Training from a state: the logits of every row of the next tokens, as `logits`
  /// gives them, dropout too, and with gradients of the parameters through these rows
  /// alone. The state then holds on to the graph: it serves this one call.
  virtual at::Tensor logits_after(DecodingState& state, const at::Tensor& tokens);

 private:
  ModelConfig config_;
};

struct ModelRow {
  std::string_view name;
  std::string_view summary;
  bool continues =
      false;             ///< writes on where its tokens end: loss by position, prompts
  bool listens = false;  ///< writes from a source that it is given
  bool fills = false;    ///< guesses tokens that are hidden behind a mask, which is the
                         ///<   last token of its vocabulary and none of its answers
  bool joins_patches = false;  ///< can read model.patch tokens as one
  std::shared_ptr<Model> (*make)(const ModelConfig& config);

  bool generates() const { return continues || listens; }
};

struct RegisterModel {
  explicit RegisterModel(ModelRow row);
};

const std::vector<ModelRow>& models();

/// The row of a name; std::invalid_argument lists the names.
const ModelRow& model_row(std::string_view name);

/// Whether there are the attentions and encodings that a model asks for, which can be said
/// before any data is read. std::invalid_argument names the key and lists what there is.
void check_names(const ModelConfig& config);

/// Builds a model. std::invalid_argument lists what is legal: the names of models, or
/// the encodings that the attention can serve.
std::shared_ptr<Model> make_model(const ModelConfig& config);

/// The grid whose axes the encodings of a model see, {14, 14}; empty: they see a line, or
/// there is no grid. std::invalid_argument where model.grid asks for one that they do not
/// take, or that the data has not.
std::vector<int64_t> seen_grid(const ModelConfig& config);

}  // namespace lagwise
