#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string_view>
#include <vector>

#include "lagwise/attention/memory_options.h"
#include "lagwise/nn/pass.h"
#include "lagwise/ops/dense.h"
#include "lagwise/ops/linear_attention.h"

namespace lagwise::nn {

/// What a mixer keeps of the past of a batch.
class MixerState {
 public:
  virtual ~MixerState() = default;
  virtual int64_t bytes() const = 0;

  /// Sequence b becomes what sequence order[b] was, int64 [B]; one may be taken often, or
  /// not at all: search among several continuations.
  virtual void reorder(const at::Tensor& order) = 0;

  /// Where it is the state of linear attention and nothing else, that; else null.
  virtual ops::LinearState* constant_size() { return nullptr; }
};

/// The rows of a layer's input as heads see them, and its gates.
struct HeadRows {
  at::Tensor q;                    ///< [B, H, N, D]
  at::Tensor k;                    ///< [B, H, M, D]
  at::Tensor v;                    ///< [B, H, M, E]
  at::Tensor log_decay = {};       ///< [B, H, M], where memory().forgets
  at::Tensor write_strength = {};  ///< [B, H, M], where memory().rewrites
};

/// What a mixer wants added to the queries and keys it gets; undefined: nothing.
struct RowBias {
  at::Tensor q, k;  ///< [H, D]
};

/// Where positions and attention meet: one attention of one layer, joined with one
/// encoding. It takes projected rows and mixes them along the sequence.
class Mixer {
 public:
  virtual ~Mixer() = default;

  /// Trained tensors of the attention itself, without those of the encoding.
  virtual Parameters parameters() const { return {}; }

  /// What the deviation of the projection to queries is multiplied by at first, so that
  /// scores of unit rows begin with deviation 1.
  virtual double query_gain() const { return 1; }

  /// Added by the layer, for which it is part of a projection's bias.
  virtual RowBias row_bias() const { return {}; }

  /// A norm of each head's results that it leaves to the layer; without a gain: none.
  virtual ops::InputNorm head_norm() const { return {}; }

  /// What it asks of the layer around it: gates, convolutions.
  virtual MemoryOptions memory() const { return {}; }

  /// Whether its results depend on the draw of a pass: random features, or an encoding
  /// that is stochastic.
  virtual bool draws() const = 0;

  /// -> [B, H, N, E]
  virtual at::Tensor mix(const HeadRows& rows, const Pass& pass) const = 0;

  /// The state before the first row of `batch` sequences.
  virtual std::unique_ptr<MixerState> start(int64_t batch) const = 0;

  /// What it does with one token of a causal text, as data (core/one_token.h).
  /// std::invalid_argument where that cannot be said, with what can.
  virtual OneTokenLayer one_token(const Draw& draw, int64_t horizon) const;

  /// Causal: the next N rows of every sequence, seeing all before them. No gradient.
  virtual at::Tensor extend(MixerState& state, const HeadRows& rows,
                            const Pass& pass) const = 0;

  /// Cross attention: takes in the keys once, then answers queries. No gradient.
  virtual std::unique_ptr<MixerState> listen(const at::Tensor& k, const at::Tensor& v,
                                             const Pass& pass) const = 0;
  virtual at::Tensor ask(const MixerState& heard, const at::Tensor& q,
                         const Pass& pass) const = 0;
};

/// For which layer of which model a mixer is made.
struct MixerPlace {
  HeadShape shape;
  int64_t layer = 0, layers = 1;
  bool causal = true;
};

/// One kind of attention. `make` may assume that `serves` holds: make_mixer checks it.
struct MixerRow {
  std::string_view name;
  std::string_view summary;
  std::vector<Spec::Option> (*options)();  ///< with their defaults
  bool (*serves)(const Traits& encoding, bool causal);
  /// The width of the features of heads of width D: what an encoding that acts after
  /// the feature map gets.
  int64_t (*feature_width)(std::string_view text, int64_t dim);
  std::unique_ptr<Mixer> (*make)(std::string_view text, const MixerPlace& place,
                                 std::shared_ptr<Encoding> encoding, Layer layer);
};

struct RegisterMixer {
  explicit RegisterMixer(MixerRow row);
};

const std::vector<MixerRow>& mixers();

/// The row of "name:key=value,..." or of a preset; std::invalid_argument lists the names
/// of both.
const MixerRow& mixer_row(std::string_view text);

/// Makes the encoding of that text for heads of that shape. One that acts after the
/// feature map of `attention` is made as wide as the features.
std::shared_ptr<Encoding> make_encoding_for(std::string_view attention,
                                            const std::string& text, HeadShape shape);

/// From "linear:map=elu1", "exact" or a preset (attention_presets.h). std::invalid_argument lists the legal names, or,
/// where the attention cannot serve the encoding, the encodings it can.
std::unique_ptr<Mixer> make_mixer(std::string_view text, const MixerPlace& place,
                                  const std::string& encoding_text,
                                  std::shared_ptr<Encoding> encoding, Layer layer);

}  // namespace lagwise::nn
