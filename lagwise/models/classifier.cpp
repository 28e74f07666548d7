// A classifier: a full stack over the whole sequence, its rows pooled into one.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include <stdexcept>

#include "lagwise/models/transformer.h"

namespace lagwise {
namespace {

class Classifier : public Model {
 public:
  explicit Classifier(const ModelConfig& config)
      : Model(config), by_front_(config.pooling == "cls") {
    if (config.pooling != "cls" && config.pooling != "mean")
      throw std::invalid_argument("model.pooling: expected one of mean, cls, got '" +
                                  config.pooling + "'");
    if (config.classes < 2)
      throw std::invalid_argument("model.classes: expected at least 2, got " +
                                  std::to_string(config.classes));
    nn::Initial initial{config.seed};
    stack_ = std::make_shared<Stack>(config, false, false, initial);
    for (const auto& part : stack_->named_children())
      register_module(part.key(), part.value());
    if (by_front_)
      front_ = register_parameter("cls", initial.normal({1, 1, config.dim}, 1.0));
    head_ = register_module(
        "head", std::make_shared<Head>(config, config.classes, false, initial));
  }

  at::Tensor logits(const Batch& batch, const Draw& draw) override {
    stack_->train(is_training());
    if (config().patch > 1 && batch.lengths.defined())
      throw std::invalid_argument("classifier: patches have no lengths");
    const at::Tensor x = stack_->forward(batch, draw, front_);  // [B, N (+ 1), C]
    return head_->forward(by_front_ ? x.select(1, 0) : mean(x, batch.lengths), {});
  }

 private:
  /// Over the real rows of each sequence.
  static at::Tensor mean(const at::Tensor& x, const at::Tensor& lengths) {
    if (!lengths.defined()) return x.mean(1);
    const at::Tensor real = at::arange(x.size(1), at::kLong).lt(lengths.unsqueeze(1));
    return (x * real.unsqueeze(-1).to(x.scalar_type())).sum(1) /
           lengths.clamp_min(1).unsqueeze(1).to(x.scalar_type());
  }

  bool by_front_;
  std::shared_ptr<Stack> stack_;
  std::shared_ptr<Head> head_;
  at::Tensor front_;
};

const RegisterModel registered({
    .name = "classifier",
    .summary = "one class for a whole sequence",
    .make = [](const ModelConfig& config) -> std::shared_ptr<Model> {
      return std::make_shared<Classifier>(config);
    },
});

}  // namespace
}  // namespace lagwise
