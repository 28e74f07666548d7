#include <gtest/gtest.h>

#include "lagwise/models/testing_models.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;

constexpr int64_t kMask = 10;  // of a vocabulary of 11

template <class Act>
void for_each_encoder(const Act& act) {
  for (const bool tied : {true, false})
    for (const char* attention : {kNormalised, kSigned, "exact"})
      for (const char* encoding : {"none", "rope:layout=half", "sine_spe", "alibi"}) {
        if (attention == kSigned && std::string(encoding) == "alibi") continue;
        SCOPED_TRACE(std::string(encoding) + " with " + attention);
        ModelConfig config = small_model("encoder_lm", encoding, attention);
        config.tied = tied;
        act(*make_model(config));
      }
}

TEST(EncoderLm, AnswersWithAnyTokenButTheMask) {
  for_each_encoder([](Model& model) {
    const at::Tensor got =
        model.logits(batch_of(random_tokens(2, 7, 11)), {.seed = 2}).detach();
    EXPECT_EQ(got.sizes(), at::IntArrayRef({2, 7, kMask}));
  });
}

TEST(EncoderLm, SeesBothSidesOfWhatIsHidden) {
  for_each_encoder([](Model& model) {
    at::Tensor tokens = random_tokens(1, 9, 10);
    tokens[0][4] = kMask;
    const auto at_the_mask = [&](const at::Tensor& x) {
      return model.logits(batch_of(x), {.seed = 2}).detach()[0][4];
    };
    const at::Tensor before = at_the_mask(tokens);
    for (const int64_t place : {0, 8}) {
      at::Tensor other = tokens.clone();
      other[0][place] = (tokens[0][place].item<int64_t>() + 1) % 10;
      EXPECT_GT((at_the_mask(other) - before).abs().max().item<double>(), 1e-6)
          << place;
    }
  });
}

TEST(EncoderLm, GivesTheSameAnswersWithAndWithoutPadding) {
  for_each_encoder([](Model& model) {
    const at::Tensor tokens = random_tokens(2, 9, 11);
    const at::Tensor got =
        model.logits(batch_of(tokens, whole({9, 5})), {.seed = 2}).detach();
    expect_same(
        got.narrow(0, 1, 1).narrow(1, 0, 5),
        model.logits(batch_of(tokens.narrow(0, 1, 1).narrow(1, 0, 5)), {.seed = 2})
            .detach());
  });
}

TEST(EncoderLm, TrainsEveryParameterByHiddenTokensAlone) {
  for_each_encoder([](Model& model) {
    Batch batch = batch_of(random_tokens(2, 9, 10));
    batch.targets = at::full({2, 9}, -1, at::kLong);
    for (const int64_t place : {1, 4}) {
      batch.targets.select(1, place).copy_(batch.tokens.select(1, place));
      batch.tokens.select(1, place).fill_(kMask);
    }
    const Loss loss = model.loss(batch, {.seed = 3});
    EXPECT_EQ(loss.count, 4);
    loss.sum.backward();
    expect_gradients(model);
  });
}

TEST(EncoderLm, HasTheNamesAndTheWeightsOfAClassifier) {
  const auto names = [](const char* kind) {
    std::vector<std::string> all;
    const auto model = make_model(small_model(kind, "sine_spe", kSigned));
    for (const auto& one : model->named_parameters())
      if (!one.key().starts_with("head.")) all.push_back(one.key());
    return all;
  };
  EXPECT_EQ(names("encoder_lm"), names("classifier"));
}

TEST(EncoderLm, SaysWhatItNeeds) {
  ModelConfig config = small_model("encoder_lm", "none", kNormalised);
  config.vocabulary = 1;
  EXPECT_EQ(message_of([&] { make_model(config); }),
            "model.vocabulary: expected at least 2, a token and the mask, got 1");
  config.vocabulary = 11;
  EXPECT_EQ(message_of([&] {
              make_model(config)->start(1, {});
            }).find("model 'encoder_lm' does not generate; expected decoder_lm"),
            0u);
}

}  // namespace
}  // namespace lagwise
