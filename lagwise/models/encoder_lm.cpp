// A masked language model: a full stack, and from every row the token that stands there.
// Some tokens of its input are hidden behind a mask, and it is asked for those (Devlin et
// al., 2019, arXiv:1810.04805). Every row sees all others, on both sides, so that nothing
// is asked of a row that shows its own answer.
//
// The mask is the last token of the vocabulary, V - 1. It is something to read, never to
// answer, so logits are [B, N, V - 1].

#include <stdexcept>

#include "lagwise/models/stack.h"

namespace lagwise {
namespace {

class EncoderLm : public Model {
 public:
  explicit EncoderLm(const ModelConfig& config) : Model(config) {
    if (config.vocabulary < 2)
      throw std::invalid_argument(
          "model.vocabulary: expected at least 2, a token and the mask, got " +
          std::to_string(config.vocabulary));
    nn::Initial initial{config.seed};
    stack_ = std::make_shared<Stack>(config, false, false, initial);
    adopt(*this,
          *stack_);  // the names of a classifier, which may begin with its weights
    head_ = register_module(
        "head", std::make_shared<Head>(config, answers(), config.tied, initial));
  }

  at::Tensor logits(const Batch& batch, const Draw& draw) override {
    stack_->train(is_training());
    return head_->forward(stack_->forward(batch, draw),
                          stack_->embedding().narrow(0, 0, answers()));
  }

 private:
  int64_t answers() const { return config().vocabulary - 1; }

  std::shared_ptr<Stack> stack_;
  std::shared_ptr<Head> head_;
};

const RegisterModel encoder_lm_registered({
    .name = "encoder_lm",
    .summary = "guesses hidden tokens from all around them",
    .fills = true,
    .make = [](const ModelConfig& config) -> std::shared_ptr<Model> {
      return std::make_shared<EncoderLm>(config);
    },
});

}  // namespace
}  // namespace lagwise
