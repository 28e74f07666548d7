// Every encoding with every attention that serves it, in every model.

#include "lagwise/encodings/encoding.h"
#include "lagwise/models/testing_models.h"
#include "lagwise/nn/mixer.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;

/// Calls act(encoding, attention) for every pair that the traits allow.
template <class Act>
int for_each_pair(bool causal, const Act& act) {
  int pairs = 0;
  for (const nn::MixerRow& attention : nn::mixers())
    for (const EncodingRow& row : encodings()) {
      const auto made = make_encoding(row.text(), {.heads = 2, .dim = 8});
      if (!attention.serves(made->traits(), causal)) continue;
      SCOPED_TRACE(std::string(row.text()) + " with " + std::string(attention.name));
      act(std::string(row.text()), std::string(attention.name));
      ++pairs;
    }
  return pairs;
}

void expect_trains(const std::shared_ptr<Model>& model, const Batch& batch) {
  const Loss loss = model->loss(batch, {.seed = 3});
  EXPECT_TRUE(std::isfinite(loss.sum.item<double>()));
  loss.sum.backward();
  expect_gradients(*model);
}

TEST(EveryEncoding, TrainsALanguageModel) {
  const int pairs =
      for_each_pair(true, [](const auto& encoding, const auto& attention) {
        const auto model = make_model(small_model("decoder_lm", encoding, attention));
        Batch batch = batch_of(random_tokens(2, 9, 11));
        batch.targets = random_tokens(2, 9, 11, 2);
        expect_trains(model, batch);
      });
  EXPECT_GE(pairs, 20);
}

TEST(EveryEncoding, TrainsAClassifierOfPaddedTexts) {
  const int pairs =
      for_each_pair(false, [](const auto& encoding, const auto& attention) {
        const auto model = make_model(small_model("classifier", encoding, attention));
        Batch batch = batch_of(random_tokens(2, 9, 11), whole({9, 6}));
        batch.targets = whole({0, 2});
        expect_trains(model, batch);
      });
  EXPECT_GE(pairs, 20);
}

TEST(EveryEncoding, JoinsTwoSequencesByCrossAttention) {
  int pairs = 0;
  for_each_pair(false, [&](const auto& encoding, const auto& attention) {
    ModelConfig config = small_model("encoder_decoder", "none", kNormalised);
    config.cross_encoding = encoding, config.cross_attention = attention;
    if (encoding == "sinusoidal" || encoding == "learned") return;
    const auto model = make_model(config);
    Batch batch = batch_of(random_tokens(2, 7, 11));
    batch.source = random_tokens(2, 5, 11, 3), batch.source_lengths = whole({5, 3});
    batch.targets = random_tokens(2, 7, 11, 2);
    expect_trains(model, batch);

    // Decoding reads what was heard, and agrees with the pass over everything.
    const at::Tensor want = model->logits(batch, {.seed = 3}).detach();
    const auto state = model->start(2, {.seed = 3}, &batch);
    at::Tensor got = model->extend(*state, batch.tokens.narrow(1, 0, 4));
    expect_same(got, want.select(1, 3));
    for (int64_t i = 4; i < 7; ++i) {
      got = model->extend(*state, batch.tokens.narrow(1, i, 1));
      expect_same(got, want.select(1, i));
    }
    ++pairs;
  });
  EXPECT_GE(pairs, 16);
}

TEST(EveryEncoding, DecodesAsTheFullPassDoes) {
  for_each_pair(true, [](const auto& encoding, const auto& attention) {
    const auto model = make_model(small_model("decoder_lm", encoding, attention));
    const at::Tensor tokens = random_tokens(2, 12, 11);
    const at::Tensor want = model->logits(batch_of(tokens), {.seed = 3}).detach();
    const auto state = model->start(2, {.seed = 3});
    expect_same(model->extend(*state, tokens.narrow(1, 0, 5)), want.select(1, 4));
    for (int64_t i = 5; i < 12; ++i)
      expect_same(model->extend(*state, tokens.narrow(1, i, 1)), want.select(1, i));
  });
}

}  // namespace
}  // namespace lagwise
