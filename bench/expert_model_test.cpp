#include "bench/expert_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "bench/memory.h"
#include "lagwise/train/adamw.h"

namespace lagwise::bench {
namespace {

ModelConfig expert_config() {
  ModelConfig config;
  config.layers = 2, config.dim = 24, config.heads = 3, config.feed_forward = 40;
  config.vocabulary = 11;
  config.encoding = kExpertEncoding, config.attention = kExpertAttention;
  return config;
}

Batch expert_batch(int64_t rows, int64_t n) {
  at::manual_seed(5);
  Batch batch;
  batch.tokens = at::randint(11, {rows, n}, at::kLong);
  batch.targets = at::randint(11, {rows, n}, at::kLong);
  batch.targets[0][n / 2] = -1;
  return batch;
}

/// Gains of 1 and biases of 0, as models begin, would hide a factor that is missing.
std::shared_ptr<Model> random_model(const ModelConfig& config, at::ScalarType type) {
  const auto model = make_model(config);
  at::manual_seed(7);
  const at::NoGradGuard no_graph;
  for (at::Tensor& x : model->parameters())
    x.add_(at::randn_like(x), x.dim() == 1 ? 0.3 : 0.05);
  model->to(type);
  return model;
}

/// The gradient of our parameter `name` in the expert's model, where the three
/// projections are one and biases of projection and heads are one.
at::Tensor gradient_of(const ExpertModel& model, const std::string& name,
                       const at::Tensor& like, int64_t c) {
  std::string at = name;
  int64_t third = -1;
  for (const auto& [side, place] : {std::pair{'q', 0}, {'k', 1}, {'v', 2}})
    for (const std::string end : {"_proj.weight", "_proj.bias", "_bias"}) {
      const std::string tail = "attn." + std::string(1, side) + end;
      if (!name.ends_with(tail)) continue;
      third = place;
      at = name.substr(0, name.size() - tail.size()) + "attn.qkv_proj" +
           (end == "_proj.weight" ? ".weight" : ".bias");
    }
  for (const NamedTensor& one : model.parameters())
    if (one.name == at) {
      const at::Tensor grad = one.tensor.grad();
      return (third < 0 ? grad : grad.narrow(0, third * c, c)).view(like.sizes());
    }
  ADD_FAILURE() << "no parameter " << at;
  return {};
}

void expect_same(const ModelConfig& config, int64_t n, at::ScalarType type,
                 double tolerance) {
  SCOPED_TRACE("N = " + std::to_string(n) + ", norm " + config.norm);
  const auto ours = random_model(config, type);
  ExpertModel expert(*ours);
  const Batch batch = expert_batch(3, n);
  const Loss sum = ours->loss(batch, {});
  const at::Tensor want = sum.sum / double(sum.count), got = expert.loss(batch);
  EXPECT_NEAR(got.item<double>(), want.item<double>(), tolerance * want.item<double>());
  want.backward(), got.backward();
  for (const auto& item : ours->named_parameters()) {
    const at::Tensor a = item.value().grad();
    const at::Tensor b = gradient_of(expert, item.key(), item.value(), config.dim);
    ASSERT_TRUE(a.defined() && b.defined()) << item.key();
    const double size = a.abs().max().item<double>();
    EXPECT_GT(size, 0) << item.key();
    EXPECT_LE((a - b).abs().max().item<double>(), tolerance * size) << item.key();
  }
}

// A baseline that computes something else, or less, would be no baseline.
TEST(ExpertModel, ComputesAndTrainsWhatOursDoes) {
  const ModelConfig config = expert_config();
  for (const int64_t n :
       {256, 64, 20, 150})  // chunks, one, less than one, a part of one
    expect_same(config, n, at::kDouble, 1e-9);
}

TEST(ExpertModel, HoldsInFloat) { expect_same(expert_config(), 512, at::kFloat, 1e-4); }

TEST(ExpertModel, FollowsTheConfig) {
  ModelConfig config = expert_config();
  config.norm = "layer", config.tied = false;
  expect_same(config, 128, at::kDouble, 1e-9);
}

TEST(ExpertModel, StepsWithOurOptimiser) {
  const auto ours = make_model(expert_config());
  ExpertModel expert(*ours);
  AdamW optimiser(expert.parameters());
  const Batch batch = expert_batch(2, 128);
  double first = 0, last = 0;
  for (int64_t step = 1; step <= 20; ++step) {
    optimiser.forget_gradients();
    const at::Tensor loss = expert.loss(batch);
    loss.backward();
    optimiser.update({}, step, 1e-2, 1);
    last = loss.item<double>();
    if (step == 1) first = last;
  }
  EXPECT_LT(last, 0.8 * first);
}

TEST(ExpertModel, RefusesOtherModels) {
  ModelConfig config = expert_config();
  config.encoding = "rope:layout=half";
  EXPECT_THROW(ExpertModel(*make_model(config)), std::invalid_argument);
}

TEST(ExpertModel, NeedsAtLeastTheMemoryItIsSaidTo) {
  ModelConfig config = expert_config();
  config.dim = 96, config.feed_forward = 384;
  ExpertModel expert(*make_model(config));
  const Batch batch = expert_batch(2, 512);
  expert.loss(batch);  // makes its tables
  const int64_t measured = extra_bytes([&]() -> std::vector<at::Tensor> {
    expert.loss(batch).backward();
    return {};
  });
  const int64_t said = expert_step_bytes(config, 2, 512);
  EXPECT_GE(measured, said);
  EXPECT_LE(measured, 2 * said);
}

}  // namespace
}  // namespace lagwise::bench
