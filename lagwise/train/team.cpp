#include "lagwise/train/team.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <stdexcept>

#include "lagwise/dist/tree_sum.h"
#include "lagwise/models/shard.h"

namespace lagwise {
namespace {

void refuse_number(const std::string& key, const std::string& expected, int64_t got) {
  throw std::invalid_argument(key + ": expected " + expected + ", got " +
                              std::to_string(got));
}

}  // namespace

Team::Team(const TrainConfig& config, const ops::Peers* peers,
           const ops::Peers* columns)
    : peers_(peers != nullptr && peers->size() > 1 ? peers : nullptr),
      columns_(columns),
      width_(static_cast<int>(config.sequence_ranks)),
      leaves_(config.leaves),
      batch_(config.batch) {
  if (!dist::is_power_of_two(leaves_))
    refuse_number("train.leaves", "a power of two", leaves_);
  if (leaves_ > batch_)
    refuse_number("train.leaves", "at most train.batch = " + std::to_string(batch_),
                  leaves_);
  if (!dist::is_power_of_two(width_))
    refuse_number("train.sequence_ranks", "a power of two", width_);
  if (size() % width_ != 0)
    refuse_number("train.sequence_ranks",
                  "a divisor of the number of processes, " + std::to_string(size()),
                  width_);
  if (leaves_ % groups() != 0)
    refuse_number("train.leaves",
                  "a multiple of " + std::to_string(groups()) + ", since " +
                      std::to_string(groups()) + (width_ > 1 ? " groups of" : "") +
                      " processes share out a batch",
                  leaves_);
  if (width_ > 1 && (columns_ == nullptr || columns_->size() != width_))
    throw std::invalid_argument("train.sequence_ranks: expected a group of " +
                                std::to_string(width_) + " processes");
  if (width_ > 1 && config.past != "0")
    throw std::invalid_argument(
        "train.past: expected 0 with train.sequence_ranks above 1, got " + config.past);
}

Rows Team::rows(int64_t leaf) const {
  return {batch_ * leaf / leaves_, batch_ * (leaf + 1) / leaves_, leaf, leaves_};
}

Batch Team::part(const Batch& batch, int64_t patch) const {
  if (width_ == 1) return batch;
  return shard(batch, columns_of(batch.tokens.size(1), columns_->rank(), width_, patch),
               *columns_);
}

at::Tensor Team::gather(const at::Tensor& numbers) const {
  return alone() ? numbers.unsqueeze(0) : peers_->gather(numbers);
}

void Team::share_(at::Tensor& tensor) const {
  if (!alone()) peers_->broadcast_(tensor, 0);
}

void Team::share(std::string& text) const {
  if (alone()) return;
  at::Tensor size = at::full({1}, static_cast<int64_t>(text.size()), at::kLong);
  peers_->broadcast_(size, 0);
  text.resize(static_cast<size_t>(size.item<int64_t>()));
  at::Tensor bytes = at::empty({size.item<int64_t>()}, at::kByte);
  std::copy(text.begin(), text.end(), bytes.data_ptr<uint8_t>());
  peers_->broadcast_(bytes, 0);
  std::copy_n(bytes.data_ptr<uint8_t>(), text.size(), text.begin());
}

void Team::share(double& number) const {
  if (alone()) return;
  at::Tensor one = at::full({1}, number, at::kDouble);
  peers_->broadcast_(one, 0);
  number = one.item<double>();
}

void Team::expect_same(uint64_t number, const std::string& what) const {
  if (alone()) return;
  const at::Tensor all =
      peers_->gather(at::full({1}, static_cast<int64_t>(number), at::kLong));
  for (int rank = 1; rank < size(); ++rank)
    if (all[rank].item<int64_t>() != all[0].item<int64_t>())
      throw std::runtime_error("rank " + std::to_string(rank) + " has another " + what +
                               " than rank 0");
}

}  // namespace lagwise
