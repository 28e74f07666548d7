#include "lagwise/train/exported_loss.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include "lagwise/models/model.h"
#include "lagwise/train/exported_model.h"

namespace lagwise {
namespace {

ModelConfig small_decoder() {
  ModelConfig config;
  config.layers = 2, config.dim = 32, config.heads = 2, config.feed_forward = 64;
  config.vocabulary = 23, config.length = 64;
  config.encoding = "rope:layout=half", config.attention = "linear:map=elu1";
  return config;
}

Batch texts(int64_t rows, int64_t columns) {
  Batch batch;
  batch.tokens = at::randint(23, {rows, columns}, at::kLong);
  batch.targets = at::randint(23, {rows, columns}, at::kLong);
  return batch;
}

TEST(ExportedLoss, IsThatOfTheModelItCameFrom) {
  const auto model = make_model(small_decoder());
  model->eval();
  Batch batch = texts(3, 40);
  batch.targets.select(1, 7).fill_(-1);  // does not count
  const Loss by_torch = model->loss(batch, {});
  for (const auto& [weights, apart] : {std::pair(kernels::WeightType::f32, 1e-5),
                                       std::pair(kernels::WeightType::int8, 1e-2)}) {
    const ModelInMemory made = open_in_memory(exported_model(*model, {}, weights));
    const Loss small = exported_loss(*made.model, batch);
    EXPECT_EQ(small.count, 3 * 39);
    EXPECT_EQ(small.count, by_torch.count);
    EXPECT_NEAR(small.sum.item<double>() / double(small.count),
                by_torch.sum.item<double>() / double(small.count), apart);
    if (weights == kernels::WeightType::f32) {
      EXPECT_EQ(small.right, by_torch.right);
    }
  }
}

TEST(ExportedLoss, ReadsNothingBehindTheEndOfARow) {
  const auto model = make_model(small_decoder());
  const ModelInMemory made =
      open_in_memory(exported_model(*model, {}, kernels::WeightType::f32));
  Batch batch = texts(2, 10), first = batch;
  batch.lengths = at::full({2}, 10, at::kLong);
  batch.lengths[1] = 4;
  batch.targets[1].slice(0, 4).fill_(-1);
  batch.tokens[1].slice(0, 4).fill_(99);  // not in the vocabulary
  first.tokens = first.tokens.clone(), first.targets = batch.targets;
  first.tokens[1].slice(0, 4).fill_(0);
  EXPECT_EQ(exported_loss(*made.model, batch).sum.item<double>(),
            exported_loss(*made.model, first).sum.item<double>());
}

}  // namespace
}  // namespace lagwise
