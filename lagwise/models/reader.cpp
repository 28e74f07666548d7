#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>

#include <stdexcept>

#include "lagwise/models/stack.h"
#include "lagwise/ops/peer_rows.h"

namespace lagwise {
namespace {

/// The mean over the real rows of each sequence, without padding.
at::Tensor mean_row(const at::Tensor& x, const at::Tensor& lengths) {
  if (!lengths.defined()) return x.mean(1);
  const at::Tensor real = at::arange(x.size(1), at::kLong).lt(lengths.unsqueeze(1));
  return (x * real.unsqueeze(-1).to(x.scalar_type())).sum(1) /
         lengths.clamp_min(1).unsqueeze(1).to(x.scalar_type());
}

/// The same where ranks share the rows: the sum of all over how many there are.
at::Tensor mean_row_of_all(const at::Tensor& x, const at::Tensor& lengths,
                           const ops::Peers& peers) {
  const at::Tensor real =
      lengths.defined() ? lengths : at::full({x.size(0)}, x.size(1), at::kLong);
  const at::Tensor mask = at::arange(x.size(1), at::kLong).lt(real.unsqueeze(1));
  const at::Tensor sum = (x * mask.unsqueeze(-1).to(x.scalar_type())).sum(1);
  return ops::sum_over_ranks(peers, sum) /
         peers.gather(real).sum(0).clamp_min(1).unsqueeze(1).to(x.scalar_type());
}

/// The first of all rows, which rank 0 has: the sum of what each has of it.
at::Tensor first_row_of_all(const at::Tensor& x, const ops::Peers& peers) {
  return ops::sum_over_ranks(peers, x.narrow(1, 0, peers.rank() == 0 ? 1 : 0).sum(1));
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
  if (batch.is_shared())
    return front_.defined() ? first_row_of_all(x, *batch.peers)
                            : mean_row_of_all(x, batch.lengths, *batch.peers);
  return front_.defined() ? x.select(1, 0) : mean_row(x, batch.lengths);
}

}  // namespace lagwise
