#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include <stdexcept>

#include "lagwise/models/stack.h"

namespace lagwise {
namespace {

/// The mean over the real rows of each sequence, without padding.
at::Tensor mean_row(const at::Tensor& x, const at::Tensor& lengths) {
  if (!lengths.defined()) return x.mean(1);
  const at::Tensor real = at::arange(x.size(1), at::kLong).lt(lengths.unsqueeze(1));
  return (x * real.unsqueeze(-1).to(x.scalar_type())).sum(1) /
         lengths.clamp_min(1).unsqueeze(1).to(x.scalar_type());
}

}  // namespace

Reader::Reader(const ModelConfig& config, nn::Initial& initial) : patch_(config.patch) {
  if (config.pooling != "cls" && config.pooling != "mean")
    throw std::invalid_argument("model.pooling: expected one of mean, cls, got '" +
                                config.pooling + "'");
  if (config.classes < 2)
    throw std::invalid_argument("model.classes: expected at least 2, got " +
                                std::to_string(config.classes));
  stack_ = std::make_shared<Stack>(config, false, false, initial);
  adopt(*this, *stack_);
  if (config.pooling == "cls")
    front_ = register_parameter("cls", initial.normal({1, 1, config.dim}, 1.0));
}

at::Tensor Reader::forward(const Batch& batch, const Draw& draw) {
  stack_->train(is_training());
  if (patch_ > 1 && batch.lengths.defined())
    throw std::invalid_argument("classifier: patches have no lengths");
  const at::Tensor x = stack_->forward(batch, draw, front_);  // [B, N (+ 1), C]
  return front_.defined() ? x.select(1, 0) : mean_row(x, batch.lengths);
}

}  // namespace lagwise
