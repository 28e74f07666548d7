#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lagwise/core/spec.h"
#include "lagwise/ops/encoded.h"

namespace lagwise {

/// The shape of a model, as a recipe gives it. Everything needed to build it again.
struct ModelConfig {
  std::string model = "decoder_lm";  ///< a row of the table of models
  int64_t vocabulary = 256;
  int64_t classes = 0;  ///< of a classifier
  int64_t layers = 2;
  int64_t dim = 64;  ///< C
  int64_t heads = 4;
  int64_t feed_forward = 0;  ///< width; 0: 4 C
  double dropout = 0.0;
  std::string norm = "rms";  ///< rms, layer
  bool pre_norm = true;
  bool tied = true;              ///< output and input embedding are one matrix
  std::string pooling = "mean";  ///< of a classifier: mean, cls
  std::string encoding = "none";
  std::string attention = "linear:map=elu1";
  std::string cross_encoding = "none";  ///< of an encoder_decoder
  std::string cross_attention = "exact";
  int64_t length = 512;  ///< trained on; the horizon of encodings that need one
  std::vector<int64_t> grid = {};  ///< of images: {32, 32}
  int64_t patch = 1;  ///< above 1: so many tokens in a row are numbers, not names, and
                      ///<   make one row of the model by a linear map
  uint64_t seed = 0;  ///< of the initial parameters
};

/// What a model is trained or judged on. Every field a task does not need is
/// undefined. Tokens are int64; targets of -1 do not count.
struct Batch {
  at::Tensor tokens;          ///< [B, N]
  at::Tensor lengths;         ///< [B]: real tokens of each row; undefined: all
  at::Tensor targets;         ///< [B, N] next tokens, or [B] classes
  at::Tensor source;          ///< [B, M] of an encoder_decoder, or the second text of a
  at::Tensor source_lengths;  ///<   dual encoder
};

/// The sum of losses in nats over `count` targets, and how many were guessed right.
struct Loss {
  at::Tensor sum;        ///< scalar, with a gradient
  at::Tensor by_target;  ///< [B, N] or [B], detached; 0 where a target is -1
  int64_t count = 0, right = 0;
};

/// Of logits [.., V] against targets [..].
Loss cross_entropy(const at::Tensor& logits, const at::Tensor& targets);

/// What a model remembers between calls: constant in size with linear attention, a
/// cache that grows with exact attention.
class DecodingState {
 public:
  virtual ~DecodingState() = default;
  virtual int64_t bytes() const = 0;  ///< that it occupies
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

  // Decoding, for models that generate; others refuse with std::invalid_argument.
  // No gradient.

  /// A state before the first token. `source`: what an encoder_decoder listens to.
  virtual std::unique_ptr<DecodingState> start(int64_t batch, const Draw& draw,
                                               const Batch* source = nullptr);

  /// Takes tokens [B, N] (the first `lengths` of each row) and returns the logits
  /// [B, V] after the last of each. prefill = any split of it = token by token.
  virtual at::Tensor extend(DecodingState& state, const at::Tensor& tokens,
                            const at::Tensor& lengths = {});

  /// The same with the logits of every row, [B, N, V]: loss along a long stream.
  virtual at::Tensor extend_all(DecodingState& state, const at::Tensor& tokens);

 private:
  ModelConfig config_;
};

struct ModelRow {
  std::string_view name;
  std::string_view summary;
  std::shared_ptr<Model> (*make)(const ModelConfig& config);
};

struct RegisterModel {
  explicit RegisterModel(ModelRow row);
};

const std::vector<ModelRow>& models();

/// std::invalid_argument lists what is legal, and for an encoding its attention cannot
/// serve, those that can.
std::shared_ptr<Model> make_model(const ModelConfig& config);

}  // namespace lagwise
