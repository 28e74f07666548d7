// A language model: a causal stack, and the next token from every row.

#include <c10/core/GradMode.h>

#include "lagwise/models/stack.h"

namespace lagwise {
namespace {

struct LmState : DecodingState {
  explicit LmState(StackState from) : stack(std::move(from)) {}
  int64_t bytes() const override { return stack.bytes(); }
  void reorder(const at::Tensor& order) override { stack.reorder(order); }
  StackState stack;
};

class DecoderLm : public Model {
 public:
  explicit DecoderLm(const ModelConfig& config) : Model(config) {
    nn::Initial initial{config.seed};
    stack_ = std::make_shared<Stack>(config, true, false, initial);
    // The stack's parts under their own names: layers.0..., not stack.layers.0...
    adopt(*this, *stack_);
    head_ = register_module("head", std::make_shared<Head>(config, config.vocabulary,
                                                           config.tied, initial));
  }

  at::Tensor logits(const Batch& batch, const Draw& draw) override {
    stack_->train(is_training());
    return head_->forward(stack_->forward(batch, draw), stack_->embedding());
  }

  OneTokenModel one_token(const Draw& draw) const override {
    return stack_->one_token(draw);
  }

  std::unique_ptr<DecodingState> start(int64_t batch, const Draw& draw,
                                       const Batch*) override {
    const c10::NoGradGuard no_graph;
    return std::make_unique<LmState>(stack_->start(batch, draw));
  }

  at::Tensor extend(DecodingState& state, const at::Tensor& tokens,
                    const at::Tensor& lengths) override {
    const c10::NoGradGuard no_graph;
    const at::Tensor x =
        stack_->extend(static_cast<LmState&>(state).stack, tokens, lengths);
    return head_->forward(last_rows(x, lengths), stack_->embedding());
  }

  at::Tensor extend_all(DecodingState& state, const at::Tensor& tokens) override {
    const c10::NoGradGuard no_graph;
    const at::Tensor x = stack_->extend(static_cast<LmState&>(state).stack, tokens, {});
    return head_->forward(x, stack_->embedding());
  }

  at::Tensor logits_after(DecodingState& state, const at::Tensor& tokens) override {
    const at::Tensor x = stack_->extend(static_cast<LmState&>(state).stack, tokens, {},
                                        is_training() ? config().dropout : 0);
    return head_->forward(x, stack_->embedding());
  }

 private:
  std::shared_ptr<Stack> stack_;
  std::shared_ptr<Head> head_;
};

const RegisterModel decoder_lm_registered({
    .name = "decoder_lm",
    .summary = "predicts the next token from all before it",
    .continues = true,
    .make = [](const ModelConfig& config) -> std::shared_ptr<Model> {
      return std::make_shared<DecoderLm>(config);
    },
});

}  // namespace
}  // namespace lagwise
