// A classifier: a full stack over the whole sequence, its rows pooled into one.

#include "lagwise/models/stack.h"

namespace lagwise {
namespace {

class Classifier : public Model {
 public:
  explicit Classifier(const ModelConfig& config) : Model(config) {
    nn::Initial initial{config.seed};
    reader_ = std::make_shared<Reader>(config, initial);
    adopt(*this, *reader_);
    head_ = register_module(
        "head", std::make_shared<Head>(config, config.classes, false, initial));
  }

  at::Tensor logits(const Batch& batch, const Draw& draw) override {
    reader_->train(is_training());
    return head_->forward(reader_->forward(batch, draw), {});
  }

 private:
  std::shared_ptr<Reader> reader_;
  std::shared_ptr<Head> head_;
};

const RegisterModel classifier_registered({
    .name = "classifier",
    .summary = "one class for a whole sequence",
    .joins_patches = true,
    .make = [](const ModelConfig& config) -> std::shared_ptr<Model> {
      return std::make_shared<Classifier>(config);
    },
});

}  // namespace
}  // namespace lagwise
