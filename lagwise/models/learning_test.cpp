// Each model learns a task so small that only something broken fails at it.

#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include "lagwise/models/testing_models.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;

constexpr int64_t kVocabulary = 8, kRows = 16, kLength = 10;

ModelConfig learner(const char* model, const char* encoding, const char* attention) {
  ModelConfig config = small_model(model, encoding, attention);
  config.vocabulary = kVocabulary, config.dim = 32, config.feed_forward = 64;
  config.classes = kVocabulary;
  return config;
}

/// The mean loss on a batch never seen, after `steps` steps on fresh ones. A guess
/// costs ln 8 = 2.08.
template <class MakeBatch>
double loss_after(const ModelConfig& config, int64_t steps, const MakeBatch& make) {
  const auto model = make_model(config);
  torch::optim::AdamW adam(model->parameters(), torch::optim::AdamWOptions(5e-3));
  for (int64_t step = 0; step < steps; ++step) {
    adam.zero_grad();
    const Loss loss =
        model->loss(make(static_cast<uint64_t>(step) + 10), {.seed = 1, .step = step});
    (loss.sum / loss.count).backward();
    adam.step();
  }
  model->eval();
  const Loss loss = model->loss(make(1), {.seed = 1, .step = steps});
  return loss.sum.template item<double>() / static_cast<double>(loss.count);
}

/// The token two before: 0 0 a b c ..., from a b c d e ....
Batch copy_task(uint64_t seed) {
  Batch batch = batch_of(random_tokens(kRows, kLength, kVocabulary, seed));
  batch.targets = at::full({kRows, kLength}, -1, at::kLong);
  batch.targets.slice(1, 2).copy_(batch.tokens.slice(1, 0, kLength - 2));
  return batch;
}

TEST(Learning, ALanguageModelCopiesTheTokenTwoBefore) {
  struct Choice {
    const char *encoding, *attention;
  };
  for (const auto& [encoding, attention] :
       {Choice{"rope:layout=half", "exact"}, Choice{"huang", "exact"},
        Choice{"t5", "exact"}, Choice{"rope:layout=interleaved", kSigned},
        Choice{"lrpe:p=householder,angles=learned",
               "linear:map=elu1,denominator=none,norm=layer_concat"},
        Choice{"sine_spe:noise=exact,init=wide", kNormalised}}) {
    SCOPED_TRACE(std::string(encoding) + " with " + attention);
    EXPECT_LT(loss_after(learner("decoder_lm", encoding, attention), 200, copy_task),
              0.5);
  }
}

// T5's scores are not divided by sqrt(D): its queries must begin smaller, or the
// softmax begins saturated and learns no faster than one without positions.
TEST(Learning, T5LearnsMoreThanNoPositions) {
  const double none =
      loss_after(learner("decoder_lm", "none", "exact"), 100, copy_task);
  const double t5 = loss_after(learner("decoder_lm", "t5", "exact"), 100, copy_task);
  EXPECT_LT(t5, none);
}

TEST(Learning, AClassifierNamesTheFirstToken) {
  const auto first_token = [](uint64_t seed) {
    Batch batch = batch_of(random_tokens(kRows, kLength, kVocabulary, seed));
    batch.targets = batch.tokens.select(1, 0);
    return batch;
  };
  ModelConfig config = learner("classifier", "learned", kNormalised);
  EXPECT_LT(loss_after(config, 200, first_token), 0.5);
  config.attention = "exact", config.pooling = "cls", config.encoding = "huang";
  EXPECT_LT(loss_after(config, 200, first_token), 0.5);
}

TEST(Learning, AnEncoderDecoderWritesItsSource) {
  const auto write = [](uint64_t seed) {
    Batch batch = batch_of(at::zeros({kRows, kLength}, at::kLong));
    batch.source = random_tokens(kRows, kLength, kVocabulary, seed);
    batch.targets = batch.source;
    return batch;
  };
  ModelConfig config = learner("encoder_decoder", "none", kNormalised);
  // Without positions all keys look alike to every query: there is nothing to learn.
  EXPECT_GT(loss_after(config, 50, write), 1.5);
  config.cross_encoding = "huang", config.cross_attention = "exact";
  EXPECT_LT(loss_after(config, 200, write), 0.5);
  config.cross_encoding = "sine_spe:noise=exact,init=wide";
  config.cross_attention = kSigned;
  EXPECT_LT(loss_after(config, 200, write), 0.5);
}

}  // namespace
}  // namespace lagwise
