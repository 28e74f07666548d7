#include <gtest/gtest.h>

#include "lagwise/models/testing_models.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;

template <class Act>
void for_each_cross(const Act& act) {
  for (const char* attention : {kNormalised, kSigned, "exact"})
    for (const char* encoding :
         {"none", "rope:layout=half", "lrpe", "sine_spe:noise=exact", "alibi", "t5"}) {
      if (attention == kSigned && (encoding[0] == 'a' || encoding[0] == 't')) continue;
      SCOPED_TRACE(std::string(encoding) + " with " + attention);
      ModelConfig config =
          small_model("encoder_decoder", "rope:layout=half", kNormalised);
      config.cross_encoding = encoding, config.cross_attention = attention;
      act(*make_model(config));
    }
}

const Draw kCrossDraw = {.seed = 4};

Batch over_source(const at::Tensor& tokens, const at::Tensor& source,
                  const at::Tensor& source_lengths = {}) {
  Batch batch = batch_of(tokens);
  batch.source = source, batch.source_lengths = source_lengths;
  return batch;
}

TEST(EncoderDecoder, TakesSourcesOfDifferentLengths) {
  // 6 tokens over a source of 6 rows as well: both sides equally long.
  for_each_cross([](Model& model) {
    const at::Tensor tokens = random_tokens(2, 6, 11),
                     source = random_tokens(2, 6, 11, 2);
    const at::Tensor got =
        model.logits(over_source(tokens, source, whole({6, 3})), kCrossDraw).detach();
    for (int64_t b = 0; b < 2; ++b) {
      const at::Tensor heard = source.narrow(0, b, 1).narrow(1, 0, b ? 3 : 6);
      expect_same(got.narrow(0, b, 1),
                  model.logits(over_source(tokens.narrow(0, b, 1), heard), kCrossDraw)
                      .detach());
    }
  });
}

TEST(EncoderDecoder, DecodesPromptsOfDifferentLengths) {
  for_each_cross([](Model& model) {
    const at::Tensor tokens = random_tokens(2, 7, 11),
                     source = random_tokens(2, 5, 11, 2);
    const Batch both = over_source(tokens, source, whole({3, 5}));
    const at::Tensor want = model.logits(both, kCrossDraw).detach();
    const auto state = model.start(2, kCrossDraw, &both);
    const at::Tensor first =
        model.extend(*state, tokens.narrow(1, 0, 4), whole({2, 4}));
    expect_same(first[0], want[0][1]);
    expect_same(first[1], want[1][3]);
    for (int64_t i = 0; i < 3; ++i) {
      const at::Tensor next =
          at::stack({tokens[0][2 + i], tokens[1][4 + i]}).unsqueeze(1);
      const at::Tensor got = model.extend(*state, next);
      expect_same(got[0], want[0][2 + i]);
      expect_same(got[1], want[1][4 + i]);
    }
  });
}

// Far behind the last row of the source a bias by lag leaves tiny weights alone.
TEST(EncoderDecoder, DecodesFarBeyondAShortSource) {
  for (const char* encoding : {"alibi", "t5", "kerple"})
    for (const char* attention : {kNormalised, "linear:map=elu1,eps=0", "exact"}) {
      SCOPED_TRACE(std::string(encoding) + " with " + attention);
      ModelConfig config =
          small_model("encoder_decoder", "rope:layout=half", kNormalised);
      config.cross_encoding = encoding, config.cross_attention = attention;
      const auto model = make_model(config);
      const int64_t n = 300;
      const at::Tensor tokens = random_tokens(1, n, 11);
      const Batch both = over_source(tokens, random_tokens(1, 3, 11, 2));
      const at::Tensor want = model->logits(both, kCrossDraw).detach();
      const auto state = model->start(1, kCrossDraw, &both);
      for (int64_t i = 0; i < n; ++i) {
        const at::Tensor got = model->extend(*state, tokens.narrow(1, i, 1));
        if (i % 23 == 0 || i == n - 1) expect_same(got[0], want[0][i]);
      }
    }
}

TEST(EncoderDecoder, ListensToItsSource) {
  for_each_cross([](Model& model) {
    const at::Tensor tokens = random_tokens(1, 6, 11);
    const at::Tensor a =
        model.logits(over_source(tokens, random_tokens(1, 5, 11, 2)), kCrossDraw);
    const at::Tensor b =
        model.logits(over_source(tokens, random_tokens(1, 5, 11, 3)), kCrossDraw);
    EXPECT_GT((a - b).abs().max().item<double>(), 1e-3);
  });
}

TEST(EncoderDecoder, HearsItsSourceOnceWithLinearAttention) {
  const auto bytes = [](const char* attention, int64_t source) {
    ModelConfig config = small_model("encoder_decoder", "none", kNormalised);
    config.cross_attention = attention;
    const auto model = make_model(config);
    const Batch batch = over_source({}, random_tokens(1, source, 11));
    return model->start(1, {}, &batch)->bytes();
  };
  EXPECT_EQ(bytes(kNormalised, 4), bytes(kNormalised, 40));
  EXPECT_LT(bytes("exact", 4), bytes("exact", 40));
}

TEST(EncoderDecoder, SaysWhatItNeeds) {
  ModelConfig config = small_model("encoder_decoder", "none", kNormalised);
  const auto model = make_model(config);
  EXPECT_EQ(message_of([&] { model->logits(batch_of(random_tokens(1, 3, 11)), {}); }),
            "encoder_decoder: expected a source, got none");
  EXPECT_EQ(message_of([&] { model->start(1, {}); }),
            "encoder_decoder: expected a source, got none");
  config.cross_encoding = "learned";
  EXPECT_EQ(message_of([&] { make_model(config); }),
            "model.cross_encoding: expected none or an encoding of queries, keys or "
            "scores, got 'learned', which is added to an input");
  config.cross_encoding = "alibi", config.cross_attention = kSigned;
  EXPECT_EQ(message_of([&] { make_model(config); }),
            "linear: expected a denominator with an encoding by lag, whose weights are "
            "divided by their sum, "
            "got denominator=none");
}

}  // namespace
}  // namespace lagwise
