// An encoder reads a source; a decoder writes, listening to it by cross attention.

#include <c10/core/GradMode.h>

#include <stdexcept>

#include "lagwise/models/stack.h"

namespace lagwise {
namespace {

struct PairState : DecodingState {
  explicit PairState(StackState from) : stack(std::move(from)) {}
  int64_t bytes() const override { return stack.bytes(); }
  void reorder(const at::Tensor& order) override { stack.reorder(order); }
  StackState stack;
};

class EncoderDecoder : public Model {
 public:
  explicit EncoderDecoder(const ModelConfig& config) : Model(config) {
    nn::Initial initial{config.seed};
    encoder_ = register_module("encoder",
                               std::make_shared<Stack>(config, false, false, initial));
    decoder_ = register_module("decoder",
                               std::make_shared<Stack>(config, true, true, initial));
    head_ = register_module("head", std::make_shared<Head>(config, config.vocabulary,
                                                           config.tied, initial));
  }

  at::Tensor logits(const Batch& batch, const Draw& draw) override {
    return head_->forward(decoder_->forward(batch, draw, {}, listen(batch, draw)),
                          decoder_->embedding());
  }

  std::unique_ptr<DecodingState> start(int64_t batch, const Draw& draw,
                                       const Batch* source) override {
    const c10::NoGradGuard no_graph;
    if (source == nullptr)
      throw std::invalid_argument("encoder_decoder: expected a source, got none");
    return std::make_unique<PairState>(
        decoder_->start(batch, draw, listen(*source, draw), source->source_lengths));
  }

  at::Tensor extend(DecodingState& state, const at::Tensor& tokens,
                    const at::Tensor& lengths) override {
    const c10::NoGradGuard no_graph;
    const at::Tensor x =
        decoder_->extend(static_cast<PairState&>(state).stack, tokens, lengths);
    return head_->forward(last_rows(x, lengths), decoder_->embedding());
  }

  at::Tensor extend_all(DecodingState& state, const at::Tensor& tokens) override {
    const c10::NoGradGuard no_graph;
    return head_->forward(
        decoder_->extend(static_cast<PairState&>(state).stack, tokens, {}),
        decoder_->embedding());
  }

 private:
  at::Tensor listen(const Batch& batch, const Draw& draw) {
    if (!batch.source.defined())
      throw std::invalid_argument("encoder_decoder: expected a source, got none");
    Batch source;
    source.tokens = batch.source, source.lengths = batch.source_lengths;
    return encoder_->forward(source, draw);
  }

  std::shared_ptr<Stack> encoder_, decoder_;
  std::shared_ptr<Head> head_;
};

const RegisterModel encoder_decoder_registered({
    .name = "encoder_decoder",
    .summary = "writes one sequence while listening to another",
    .listens = true,
    .make = [](const ModelConfig& config) -> std::shared_ptr<Model> {
      return std::make_shared<EncoderDecoder>(config);
    },
});

}  // namespace
}  // namespace lagwise
