// Stacks whose layers differ in attention or encoding, and heads of other widths than
// C / H. That such stacks decode as they read is in decoder_lm_test.cpp.

#include <gmock/gmock.h>

#include <set>

#include "lagwise/models/layer_encodings.h"
#include "lagwise/models/testing_models.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;
using ::testing::HasSubstr;

std::set<std::string> names_of(const Model& model) {
  std::set<std::string> names;
  for (const auto& parameter : model.named_parameters()) names.insert(parameter.key());
  return names;
}

void expect_trains(const ModelConfig& config) {
  const auto model = make_model(config);
  Batch batch = batch_of(random_tokens(2, 9, 11));
  batch.targets = random_tokens(2, 9, 11, 2);
  model->loss(batch, {.seed = 3}).sum.backward();
  expect_gradients(*model);
}

TEST(LayersThatDiffer, HaveTheAttentionTheirTextNames) {
  const auto names = names_of(
      *make_model(small_model("decoder_lm", "none", "gated_deltanet; exact:window=4")));
  EXPECT_EQ(names.count("layers.0.attn.forget.rho"), 1u);
  EXPECT_EQ(names.count("layers.0.attn.gate_proj.weight"), 1u);
  EXPECT_EQ(names.count("layers.1.attn.forget.rho"), 0u);
  EXPECT_EQ(names.count("layers.1.attn.gate_proj.weight"), 0u);
}

TEST(LayersThatDiffer, HaveTheBitsOfOneTextWhereTheirsAreTheSame) {
  const Batch batch = batch_of(random_tokens(2, 9, 11));
  const auto logits = [&](const char* encoding, const char* attention) {
    return make_model(small_model("decoder_lm", encoding, attention))
        ->logits(batch, {.seed = 3})
        .detach();
  };
  const at::Tensor want = logits("sine_spe", kNormalised);
  EXPECT_TRUE(want.equal(logits("2*sine_spe", kNormalised)));
  EXPECT_TRUE(
      want.equal(logits("sine_spe; sine_spe", "linear:map=elu1 | linear:map=elu1")));
}

TEST(LayersThatDiffer, ShareAnEncodingWhereItsTextIsTheSame) {
  const HeadShape shape{.heads = 2, .dim = 8};
  const LayerEncodings all({"sine_spe", "alibi", "sine_spe"},
                           {"linear", "exact", "linear"}, shape);
  EXPECT_EQ(all.all().size(), 2u);
  EXPECT_EQ(all.of(0), all.of(2));
  EXPECT_EQ(all.which(1), 1u);
  // After a map of other features it has another width, so it is another one.
  const LayerEncodings wide({"rope:layout=half", "rope:layout=half"},
                            {"linear", "linear:map=favor:features=12"}, shape);
  EXPECT_EQ(wide.all().size(), 2u);
}

TEST(LayersThatDiffer, NameWhatTheirEncodingsShare) {
  const auto names = names_of(
      *make_model(small_model("decoder_lm", "sine_spe; sine_spe:sines=3", "linear")));
  EXPECT_EQ(names.count("pos.frequencies"), 1u);
  EXPECT_EQ(names.count("pos.1.frequencies"), 1u);
  EXPECT_EQ(LayerEncodings::prefix(0), "pos.");
  EXPECT_EQ(LayerEncodings::prefix(1), "pos.1.");
}

TEST(LayersThatDiffer, Train) {
  expect_trains(small_model("decoder_lm", "sine_spe; rope:layout=half",
                            "gated_deltanet; exact:window=4"));
  expect_trains(small_model("decoder_lm", "none | huang", "linear | exact"));
}

TEST(LayersThatDiffer, AreAsManyAsTheModelHas) {
  const auto refused = [](const char* encoding, const char* attention) {
    return message_of(
        [&] { make_model(small_model("decoder_lm", encoding, attention)); });
  };
  EXPECT_EQ(refused("none", "linear; exact; exact"),
            "model.attention: expected one text for all layers, or one for each of "
            "model.layers = 2, got 3 in 'linear; exact; exact'");
  EXPECT_THAT(refused("none; none; none", "linear"), HasSubstr("model.encoding: "));
  EXPECT_THAT(refused("huang; none", "linear; exact"),
              HasSubstr("encoding 'huang' cannot be used with causal linear"));
}

TEST(HeadsOfOtherWidths, HaveProjectionsAndStatesToMatch) {
  ModelConfig config = small_model("decoder_lm", "rope:layout=half", kNormalised);
  config.heads = 3, config.key_dim = 10, config.value_dim = 6;  // 3 does not divide 16
  const auto model = make_model(config);
  const auto all = model->named_parameters();
  EXPECT_EQ(all["layers.0.attn.q_proj.weight"].sizes(), at::IntArrayRef({30, 16}));
  EXPECT_EQ(all["layers.0.attn.k_proj.weight"].sizes(), at::IntArrayRef({30, 16}));
  EXPECT_EQ(all["layers.0.attn.v_proj.weight"].sizes(), at::IntArrayRef({18, 16}));
  EXPECT_EQ(all["layers.0.attn.out_proj.weight"].sizes(), at::IntArrayRef({16, 18}));
  const auto state = model->start(1, {});
  const at::Tensor tokens = random_tokens(1, 5, 11);
  const at::Tensor want = model->logits(batch_of(tokens), {}).detach();
  expect_same(model->extend_all(*state, tokens), want);
  // S [D, E] and z [D] of each head; the rotation keeps nothing of the past.
  EXPECT_GE(state->bytes(), 2 * 3 * (10 * 6 + 10) * 4);
}

TEST(HeadsOfOtherWidths, TrainWithEveryKindOfAttentionAndEncoding) {
  for (const char* attention :
       {kNormalised, kSigned, "exact", "gated_deltanet", "linear:map=favor:features=6",
        "linear:norm=layer_concat"})
    for (const char* encoding : {"none", "rope:layout=half", "sine_spe", "shaw"}) {
      if (std::string(encoding) == "shaw" && std::string(attention) != "exact")
        continue;
      SCOPED_TRACE(std::string(encoding) + " with " + attention);
      ModelConfig config = small_model("decoder_lm", encoding, attention);
      config.key_dim = 12, config.value_dim = 5;
      expect_trains(config);
    }
  ModelConfig both = small_model("encoder_decoder", "none", kNormalised);
  both.key_dim = 12, both.value_dim = 5;
  EXPECT_TRUE(make_model(both) != nullptr);
}

TEST(HeadsOfOtherWidths, AreRefusedBelowZero) {
  ModelConfig config = small_model("decoder_lm", "none", kNormalised);
  config.key_dim = -1;
  EXPECT_EQ(message_of([&] { make_model(config); }),
            "model.key_dim: expected 0 (dim / heads) or more, got -1");
}

}  // namespace
}  // namespace lagwise
