#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "lagwise/models/layer_encodings.h"
#include "lagwise/models/model.h"
#include "lagwise/nn/block.h"
#include "lagwise/nn/norm.h"

namespace lagwise {

/// What a stack of blocks remembers of a batch while decoding.
struct StackState {
  std::vector<nn::BlockState> blocks;
  std::vector<int64_t> taken;  ///< tokens of each sequence so far
  Draw draw;                   ///< one moment for the whole sequence

  /// Of each encoding, its codes of the rows before: one while all sequences are at the
  /// same position, else one per sequence.
  std::vector<std::vector<Code>> codes;
  int64_t bytes() const;
  void reorder(const at::Tensor& order);  ///< as DecodingState
};

/// The middle of every model: tokens in, rows out. Embedding, encoding, blocks, norm.
///
/// Tokens are names, each with a vector of its own; or numbers, config.patch of which
/// become a row by a linear map (patches of an image).
///
/// Layers may differ in their attention and encoding (core/layer_texts.h).
///
/// Parameters  embed.weight (and .bias of patches), pos.*, layers.<i>.*, norm.*; those
///             of a second encoding of the stack are pos.1.*, and so on
class Stack : public torch::nn::Module {
 public:
  /// `listens`: whether blocks also have cross attention, as the config describes it.
  Stack(const ModelConfig& config, bool causal, bool listens, nn::Initial& initial);

  /// tokens [B, N] -> rows [B, N (+ 1), C]. `front`: a learned row before each
  /// sequence. `other` [B, M, C]: the rows that cross attention reads. A batch that ranks
  /// share (models/shard.h): the rows of this rank, `front` among those of rank 0.
  at::Tensor forward(const Batch& batch, const Draw& draw, const at::Tensor& front = {},
                     const at::Tensor& other = {});

  /// What it does with one token, as data (core/one_token.h). std::invalid_argument
  /// where a layer cannot say it.
  OneTokenModel one_token(const Draw& draw) const;

  StackState start(int64_t batch, const Draw& draw, const at::Tensor& other = {},
                   const at::Tensor& other_lengths = {});
  /// The next tokens [B, N], the first `lengths` of each row -> [B, N, C]. `dropout`:
  /// where they are trained on.
  at::Tensor extend(StackState& state, const at::Tensor& tokens,
                    const at::Tensor& lengths, double dropout = 0);

  const at::Tensor& embedding() const { return embed_; }  ///< [V, C]

 private:
  void make_embedding(nn::Initial& initial);
  void register_encodings();
  nn::BlockConfig block_config(int64_t layer) const;
  at::Tensor embed(const at::Tensor& tokens) const;
  std::vector<nn::Pass> passes_over(const nn::Pass& pass, int64_t rows) const;
  void share(const ops::Peers& peers, nn::Pass& pass, int64_t n) const;
  nn::Pass cross_pass(const Draw& draw, int64_t queries, int64_t keys) const;
  nn::Pass next_pass(const StackState& state, int64_t rows) const;
  std::vector<nn::Pass> next_passes(StackState& state, const nn::Pass& pass,
                                    int64_t rows) const;
  nn::Pass next_cross_pass(const nn::Pass& pass, int64_t rows) const;

  ModelConfig config_;
  bool causal_, listens_;
  int64_t place_;  // which draws the dropout of the input uses
  std::vector<std::string> attention_texts_, encoding_texts_;  // by layer
  LayerEncodings encodings_;
  std::vector<int64_t> grid_;  // that they see; empty: a line
  std::shared_ptr<Encoding> cross_encoding_;
  at::Tensor embed_;
  std::shared_ptr<nn::LinearLayer> patches_;  // instead, where config.patch > 1
  std::vector<std::shared_ptr<nn::Block>> blocks_;
  std::shared_ptr<nn::Norm> norm_;
};

/// Rows to logits: through the embedding itself where they are tied, else a matrix of
/// its own.
class Head : public torch::nn::Module {
 public:
  Head(const ModelConfig& config, int64_t outputs, bool tied, nn::Initial& initial);
  at::Tensor forward(const at::Tensor& rows, const at::Tensor& embedding) const;

 private:
  std::shared_ptr<nn::LinearLayer> out_;
};

/// Reads a whole sequence into one row: a full stack, its rows pooled as the config
/// says, by their mean or by a learned row before the first.
///
/// Parameters  those of the stack, cls (of the pooling `cls`)
class Reader : public torch::nn::Module {
 public:
  /// std::invalid_argument for another pooling, or less than two classes.
  Reader(const ModelConfig& config, nn::Initial& initial);
  at::Tensor forward(const Batch& batch, const Draw& draw);  ///< [B, N] -> [B, C]

 private:
  int64_t patch_;
  std::shared_ptr<Stack> stack_;
  at::Tensor front_;
};

/// Takes the parts and parameters of `part` as those of `whole`, without a name
/// between: layers.0 rather than stack.layers.0.
void adopt(torch::nn::Module& whole, const torch::nn::Module& part);

/// The rows after the last real token of each sequence: x [B, N, C] -> [B, C].
at::Tensor last_rows(const at::Tensor& x, const at::Tensor& lengths);

}  // namespace lagwise
