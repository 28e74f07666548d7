// Every encoding with every attention that serves it, in every model.

#include "lagwise/encodings/encoding.h"
#include "lagwise/models/testing_models.h"
#include "lagwise/nn/mixer.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;

/// Every row as its example, and options that change what a layer keeps or is served.
std::vector<std::string> texts() {
  std::vector<std::string> all = {"lrpe:decay=retnet",
                                  "sinusoidal:decay=retnet",
                                  "sine_spe:noise=exact,decay=alibi",
                                  "sine_spe:shared=false",
                                  "conv_spe:kernel=8,shared=false",
                                  "huang:max=4,tables=head,beyond=zero"};
  for (const EncodingRow& row : encodings()) all.emplace_back(row.text());
  return all;
}

/// Calls act(encoding, attention) for every pair that the traits allow.
template <class Act>
int for_each_pair(bool causal, const Act& act) {
  int pairs = 0;
  for (const nn::MixerRow& attention : nn::mixers())
    for (const std::string& text : texts()) {
      const auto made = make_encoding(text, {.heads = 2, .dim = 8});
      if (!attention.serves(made->traits(), causal)) continue;
      SCOPED_TRACE(text + " with " + std::string(attention.name));
      act(text, std::string(attention.name));
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
    if (encoding.starts_with("sinusoidal") || encoding == "learned") return;
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

TEST(EveryEncoding, OfSpeLearnsInEachLayerOrForAllOfThem) {
  for (const std::string name : {"sine_spe:", "conv_spe:kernel=8,"}) {
    const auto names = [&](const char* shared) {
      std::vector<std::string> found;
      const auto model =
          make_model(small_model("decoder_lm", name + "shared=" + shared, kNormalised));
      for (const auto& own : model->named_parameters())
        if (own.key().find("pos.") != std::string::npos) found.push_back(own.key());
      return found;
    };
    const size_t kinds = name.starts_with("sine") ? 3 : 2;  // and a gate in each layer
    EXPECT_EQ(names("true").size(), kinds + 2);
    const auto own = names("false");
    EXPECT_EQ(own.size(), 2 * (kinds + 1));
    for (const std::string& one : own)
      EXPECT_NE(one.find(".attn.pos."), std::string::npos) << one;
  }
}

}  // namespace
}  // namespace lagwise
