// SPE with the features its authors used (Liutkus et al., 2021): FAVOR+ of both kinds,
// and ReLU. Waves and filters, gated and not, in a decoder and in an encoder.

#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include "lagwise/models/testing_models.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;

constexpr const char* kCodes[] = {"sine_spe:sines=2,realizations=16",
                                  "sine_spe:sines=2,realizations=16,gated=false",
                                  "conv_spe:kernel=5,realizations=16",
                                  "conv_spe:kernel=5,realizations=16,gated=false"};
constexpr const char* kFeatures[] = {"linear:map=favor_two_sided:features=32;redraw=2",
                                     "linear:map=favor:features=32;redraw=1",
                                     "linear:map=relu"};

template <class Act>
void for_each_pair(const char* model, const Act& act) {
  for (const char* encoding : kCodes)
    for (const char* attention : kFeatures) {
      SCOPED_TRACE(std::string(encoding) + " with " + attention);
      act(make_model(small_model(model, encoding, attention)));
    }
}

Batch text_batch(uint64_t seed = 1) {
  Batch batch = batch_of(random_tokens(3, 13, 11, seed));
  batch.targets = batch.tokens;  // each token names itself: learned in a few steps
  return batch;
}

/// Mean loss, and its gradient in every parameter.
double loss_of(Model& model, const Batch& batch, int64_t step) {
  model.zero_grad();
  const Loss loss = model.loss(batch, {.seed = 3, .step = step});
  (loss.sum / loss.count).backward();
  return loss.sum.item<double>() / static_cast<double>(loss.count);
}

/// Parameters of the code itself: shared ones, and each layer's gate.
int64_t parameters_of_the_code(const Model& model) {
  int64_t found = 0;
  for (const auto& parameter : model.named_parameters())
    if (parameter.key().find("pos.") != std::string::npos) ++found;
  return found;
}

TEST(SpeWithFavor, TrainsADecoderAndItsCode) {
  for_each_pair("decoder_lm", [](const std::shared_ptr<Model>& model) {
    EXPECT_GE(parameters_of_the_code(*model), 2);
    const double first = loss_of(*model, text_batch(), 0);
    expect_gradients(*model);
    torch::optim::AdamW adam(model->parameters(), torch::optim::AdamWOptions(1e-2));
    double last = first;
    for (int64_t step = 0; step < 20; ++step) {
      last = loss_of(*model, text_batch(static_cast<uint64_t>(step) + 2), step);
      ASSERT_TRUE(std::isfinite(last)) << "step " << step;
      adam.step();
    }
    EXPECT_LT(last, first - 0.3);
    for (const auto& parameter : model->named_parameters())
      EXPECT_TRUE(at::isfinite(parameter.value()).all().item<bool>())
          << parameter.key();
  });
}

TEST(SpeWithFavor, DecodesAsTheFullPassDoes) {
  for_each_pair("decoder_lm", [](const std::shared_ptr<Model>& model) {
    model->eval();
    const Draw draw = {.seed = 3, .step = 5};
    const at::Tensor tokens = random_tokens(2, 19, 11);
    const at::Tensor want = model->logits(batch_of(tokens), draw).detach();
    const auto state = model->start(2, draw);
    expect_same(model->extend(*state, tokens.narrow(1, 0, 6)), want.select(1, 5));
    for (int64_t i = 6; i < 19; ++i)
      expect_same(model->extend(*state, tokens.narrow(1, i, 1)), want.select(1, i));
  });
}

TEST(SpeWithFavor, TrainsAnEncoderOfPaddedTexts) {
  for_each_pair("classifier", [](const std::shared_ptr<Model>& model) {
    Batch batch = batch_of(random_tokens(3, 13, 11), whole({13, 4, 9}));
    batch.targets = whole({0, 2, 1});
    EXPECT_TRUE(std::isfinite(loss_of(*model, batch, 0)));
    expect_gradients(*model);
    const at::Tensor all = model->logits(batch, {.seed = 3}).detach();
    const at::Tensor one =
        model
            ->logits(batch_of(batch.tokens.narrow(0, 1, 1).narrow(1, 0, 4)),
                     {.seed = 3})
            .detach();
    expect_same(all.narrow(0, 1, 1), one);
  });
}

/// Filters of two axes, as on an image.
TEST(SpeWithFavor, TrainsAnEncoderOfAGrid) {
  for (const char* attention : kFeatures) {
    SCOPED_TRACE(attention);
    ModelConfig config =
        small_model("classifier", "conv_spe:kernel=3x2,realizations=16", attention);
    config.grid = {3, 4};
    const auto model = make_model(config);
    Batch batch = batch_of(random_tokens(2, 12, 11));
    batch.targets = whole({0, 2});
    EXPECT_TRUE(std::isfinite(loss_of(*model, batch, 0)));
    expect_gradients(*model);
  }
}

}  // namespace
}  // namespace lagwise
