#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lagwise/models/batch.h"
#include "lagwise/ops/encoded.h"
#include "lagwise/runtime/model.h"

namespace lagwise {

class Model;

/// What stands behind the writing of several texts at a time: it takes tokens and gives
/// the logits after them.
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// One prompt for each text, of any length.
  virtual void read(const std::vector<std::vector<int64_t>>& prompts) = 0;

  /// The next token of each text; -1 of one that has ended.
  virtual void step(const std::vector<int64_t>& tokens) = 0;

  /// After the last token of a text; zeros before the first.
  virtual std::span<const float> logits(size_t text) const = 0;

  virtual int64_t state_bytes() const = 0;

  /// What was read before the prompts: the last tokens, and how many came before those.
  struct Past {
    std::vector<int64_t> tokens;
    int64_t before = 0;
  };
  virtual Past past() const { return {}; }
};

/// By torch. `source`: what an encoder_decoder listens to. The model must outlive it.
std::unique_ptr<Decoder> torch_decoder(Model& model, int64_t texts, const Draw& draw,
                                       const Batch* source = nullptr);

/// By lagwise/runtime, from a state or, null, from the beginning.
class SmallDecoder : public Decoder {
 public:
  SmallDecoder(const runtime::Model& model, int64_t texts,
               const runtime::State* from = nullptr);

  void read(const std::vector<std::vector<int64_t>>& prompts) override;
  void step(const std::vector<int64_t>& tokens) override;
  std::span<const float> logits(size_t text) const override;
  int64_t state_bytes() const override;
  Past past() const override { return past_; }

  const runtime::State& state(size_t text) const { return *states_[text]; }

 private:
  void expect_can_take(size_t text, std::span<const int64_t> tokens) const;

  const runtime::Model& model_;
  std::vector<std::unique_ptr<runtime::State>> states_;
  std::vector<float> nothing_;
  Past past_;
};

}  // namespace lagwise
