// Two sequences, one class: the same stack reads both, and the two readings are compared:
//
//     a = read(first), b = read(second)
//     logits = W_2 relu(W_1 [a, b, a b, a - b] + c_1) + c_2
//
// the comparison of the Long Range Arena's retrieval task (Tay et al., 2020,
// arXiv:2011.04006). The first is Batch::tokens, the second Batch::source.

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <stdexcept>

#include "lagwise/models/stack.h"

namespace lagwise {
namespace {

class DualEncoder : public Model {
 public:
  explicit DualEncoder(const ModelConfig& config) : Model(config) {
    nn::Initial initial{config.seed};
    reader_ = std::make_shared<Reader>(config, initial);
    adopt(*this, *reader_);
    compare_ = register_module("compare", std::make_shared<nn::LinearLayer>(
                                              4 * config.dim, config.dim, initial));
    head_ = register_module(
        "head", std::make_shared<Head>(config, config.classes, false, initial));
  }

  at::Tensor logits(const Batch& batch, const Draw& draw) override {
    if (!batch.source.defined())
      throw std::invalid_argument("dual_encoder: expected a second text, got none");
    if (batch.is_shared())
      throw std::invalid_argument(
          "dual_encoder: expected whole texts, got parts of them; ranks share the "
          "sequences of decoder_lm and classifier alone");
    reader_->train(is_training());
    const at::Tensor a = read(batch.tokens, batch.lengths, draw);  // [B, C]
    const at::Tensor b = read(batch.source, batch.source_lengths, draw);
    const at::Tensor both = at::cat({a, b, a * b, a - b}, -1);  // [B, 4 C]
    return head_->forward(compare_->forward(both).relu(), {});
  }

 private:
  at::Tensor read(const at::Tensor& tokens, const at::Tensor& lengths,
                  const Draw& draw) {
    Batch one;
    one.tokens = tokens, one.lengths = lengths;
    return reader_->forward(one, draw);
  }

  std::shared_ptr<Reader> reader_;
  std::shared_ptr<nn::LinearLayer> compare_;
  std::shared_ptr<Head> head_;
};

const RegisterModel dual_encoder_registered({
    .name = "dual_encoder",
    .summary = "one class for two sequences, read by the same stack",
    .make = [](const ModelConfig& config) -> std::shared_ptr<Model> {
      return std::make_shared<DualEncoder>(config);
    },
});

}  // namespace
}  // namespace lagwise
