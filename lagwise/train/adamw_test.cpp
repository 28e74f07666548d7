#include "lagwise/train/adamw.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <torch/optim/adamw.h>

#include <set>
#include <string>
#include <utility>

#include "lagwise/models/model.h"
#include "lagwise/models/testing_models.h"
#include "lagwise/train/tensor_file.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;

std::shared_ptr<Model> small(uint64_t seed = 5) {
  ModelConfig config = small_model("decoder_lm", "sine_spe", kNormalised);
  config.seed = seed;
  return make_model(config);
}

void fill_gradients(Model& model, int64_t step) {
  const Batch batch = [] {
    Batch made = batch_of(random_tokens(2, 9, 11));
    made.targets = random_tokens(2, 9, 11, 2);
    return made;
  }();
  model.zero_grad();
  for (auto& parameter : model.parameters()) parameter.mutable_grad() = at::Tensor();
  model.loss(batch, {.seed = 1, .step = step}).sum.backward();
}

TEST(AdamW, StepsLikeThatOfTorch) {
  const auto ours = small(), theirs = small();
  TrainConfig config;
  config.weight_decay = 0.1, config.eps = 1e-8;
  AdamW optimiser(trained_parameters(*ours));
  std::vector<at::Tensor> matrices, others;
  for (const NamedTensor& one : trained_parameters(*theirs))
    (decays(one) ? matrices : others).push_back(one.tensor);
  ASSERT_FALSE(matrices.empty());
  ASSERT_FALSE(others.empty());
  const auto options = [&](double decay) {
    return torch::optim::AdamWOptions(1e-2)
        .weight_decay(decay)
        .betas({config.beta1, config.beta2})
        .eps(config.eps);
  };
  torch::optim::AdamW with(matrices, options(0.1)), without(others, options(0));
  for (int64_t step = 1; step <= 5; ++step) {
    fill_gradients(*ours, step);
    fill_gradients(*theirs, step);
    EXPECT_GT(optimiser.gradient_norm(), 0.01);
    optimiser.update(config, step, 1e-2, 1.0);
    with.step();
    without.step();
  }
  const auto want = theirs->named_parameters();
  for (const auto& [name, tensor] : optimiser.parameters()) {
    SCOPED_TRACE(name);
    expect_same(tensor.detach(), want[name].detach(), 2e-5);
  }
}

using Names = std::set<std::string>;

// The trained parameters of a model of one layer with all there is to train: biases and
// gains of heads, encodings of both kinds. First those that decay, then the others.
std::pair<Names, Names> groups_of(const char* model) {
  ModelConfig config = small_model(model, "sine_spe", kSigned);
  config.cross_encoding = "t5", config.cross_attention = "exact";
  config.layers = 1, config.tied = false, config.norm = "layer", config.pooling = "cls";
  std::pair<Names, Names> groups;
  for (const NamedTensor& one : trained_parameters(*make_model(config)))
    (decays(one) ? groups.first : groups.second).insert(one.name);
  return groups;
}

// The matrices of one block below `prefix`.
Names block(const std::string& prefix, bool listens = false) {
  Names names;
  for (const char* attention : {"attn.", "cross."}) {
    if (attention[0] == 'c' && !listens) continue;
    for (const char* which : {"q", "k", "v", "out"})
      names.insert(prefix + "layers.0." + attention + which + "_proj.weight");
  }
  for (const char* which : {"ff_in", "ff_out"})
    names.insert(prefix + "layers.0." + which + ".weight");
  return names;
}

Names together(Names a, const Names& b) {
  a.insert(b.begin(), b.end());
  return a;
}

TEST(AdamW, DecaysTheMatricesOfProjectionsAndEmbeddingsAlone) {
  const Names ends = {"embed.weight", "head.out.weight"};
  EXPECT_EQ(groups_of("decoder_lm").first, together(block(""), ends));
  EXPECT_EQ(groups_of("classifier").first, together(block(""), ends));
  EXPECT_EQ(groups_of("encoder_lm").first, together(block(""), ends));
  EXPECT_EQ(groups_of("dual_encoder").first,
            together(block(""), together(ends, {"compare.weight"})));
  EXPECT_EQ(
      groups_of("encoder_decoder").first,
      together(together(block("encoder."), block("decoder.", true)),
               {"encoder.embed.weight", "decoder.embed.weight", "head.out.weight"}));
}

TEST(AdamW, LeavesGainsBiasesAndEncodingsStill) {
  for (const ModelRow& row : models()) {
    SCOPED_TRACE(std::string(row.name));
    const bool two = row.name == "encoder_decoder";
    const std::string prefix = two ? "decoder." : "";
    const Names still = groups_of(std::string(row.name).c_str()).second;
    for (const char* name :
         {"layers.0.attn.q_bias", "layers.0.attn.k_bias", "layers.0.attn.norm_gain",
          "layers.0.attn.pos.gate", "pos.frequencies", "layers.0.attn.q_proj.bias",
          "norm.weight", "norm.bias"})
      EXPECT_EQ(still.count(prefix + name), 1u) << name;
    EXPECT_EQ(still.count("decoder.cross_pos.weight"), two ? 1u : 0u);
  }
}

TEST(AdamW, LeavesClocksAndConvolutionsStill) {
  const auto model = make_model(small_model("decoder_lm", "none", "gated_deltanet"));
  Names pulled, still;
  for (const NamedTensor& one : trained_parameters(*model))
    (decays(one) ? pulled : still).insert(one.name);
  for (const char* name : {"forget.rho", "forget.beta", "q_conv.taps", "k_conv.taps",
                           "v_conv.taps", "gate_proj.bias"})
    EXPECT_EQ(still.count(std::string("layers.0.attn.") + name), 1u) << name;
  for (const char* name : {"forget.weight", "write.weight", "gate_proj.weight"})
    EXPECT_EQ(pulled.count(std::string("layers.0.attn.") + name), 1u) << name;
}

TEST(AdamW, ScalesGradientsBeforeItUsesThem) {
  const auto a = small(), b = small();
  AdamW whole(trained_parameters(*a)), scaled(trained_parameters(*b));
  fill_gradients(*a, 1);
  fill_gradients(*b, 1);
  const double norm = whole.gradient_norm();
  for (const NamedTensor& one : scaled.parameters()) one.tensor.mutable_grad().mul_(4);
  EXPECT_NEAR(scaled.gradient_norm(), 4 * norm, 1e-4 * norm);
  whole.update({}, 1, 1e-2, 1.0);
  scaled.update({}, 1, 1e-2, 0.25);
  for (size_t i = 0; i < whole.parameters().size(); ++i)
    EXPECT_TRUE(whole.parameters()[i].tensor.equal(scaled.parameters()[i].tensor));
}

TEST(AdamW, HasTheSameBitsOnAnyNumberOfThreads) {
  const int before = omp_get_max_threads();
  const auto run = [](int threads) {
    omp_set_num_threads(threads);
    at::Tensor x = at::arange(100003, at::kFloat).sin();
    x.requires_grad_(true);
    x.mutable_grad() = at::arange(100003, at::kFloat).cos();
    AdamW optimiser({{"x", x}});
    optimiser.update({}, 1, 1e-2, 1.0);
    return x.detach().clone();
  };
  const at::Tensor one = run(1);
  EXPECT_TRUE(one.equal(run(2)));
  EXPECT_TRUE(one.equal(run(4)));
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace lagwise
