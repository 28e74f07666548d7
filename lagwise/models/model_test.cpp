#include "lagwise/models/model.h"

#include <gmock/gmock.h>

#include <set>

#include "lagwise/models/testing_models.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::set<std::string> names_of(const Model& model) {
  std::set<std::string> names;
  for (const auto& parameter : model.named_parameters()) names.insert(parameter.key());
  return names;
}

TEST(Model, NamesItsParameters) {
  const auto names =
      names_of(*make_model(small_model("decoder_lm", "sine_spe", kSigned)));
  for (const char* name :
       {"embed.weight", "pos.frequencies", "layers.0.attn.pos.gate",
        "layers.1.ff_in.bias", "layers.0.attn.q_proj.weight",
        "layers.1.attn.out_proj.bias", "layers.0.attn.q_bias",
        "layers.0.attn.norm_gain", "layers.1.attn_norm.weight", "norm.weight"})
    EXPECT_EQ(names.count(name), 1u) << name;
  EXPECT_EQ(names.count("head.out.weight"), 0u);  // tied
  ModelConfig apart = small_model("decoder_lm", "none", kNormalised);
  apart.tied = false;
  EXPECT_EQ(names_of(*make_model(apart)).count("head.out.weight"), 1u);
}

TEST(Model, NamesTheTwoStacksOfAnEncoderDecoder) {
  ModelConfig config = small_model("encoder_decoder", "sine_spe", kNormalised);
  config.cross_encoding = "sine_spe";
  const auto names = names_of(*make_model(config));
  for (const char* name :
       {"encoder.layers.0.attn.q_proj.weight", "decoder.layers.1.cross.k_proj.weight",
        "encoder.pos.gains", "decoder.pos.gains", "decoder.cross_pos.gains",
        "decoder.layers.0.cross.pos.gate"})
    EXPECT_EQ(names.count(name), 1u) << name;
}

TEST(Model, HasTheSameWeightsFromTheSameSeed) {
  for (const ModelRow& row : models()) {
    SCOPED_TRACE(std::string(row.name));
    ModelConfig config = small_model(std::string(row.name), "sine_spe", kNormalised);
    const auto a = make_model(config), b = make_model(config);
    config.seed = 6;
    const auto c = make_model(config);
    const auto of_b = b->named_parameters(), of_c = c->named_parameters();
    for (const auto& parameter : a->named_parameters()) {
      SCOPED_TRACE(parameter.key());
      EXPECT_TRUE(parameter.value().equal(of_b[parameter.key()]));
      if (parameter.key().find("proj.weight") != std::string::npos) {
        EXPECT_FALSE(parameter.value().equal(of_c[parameter.key()]));
      }
    }
  }
}

TEST(Model, DropsOutInTrainingOnlyAndAnewEachStep) {
  ModelConfig config = small_model("decoder_lm", "none", kNormalised);
  config.dropout = 0.5;
  const auto model = make_model(config);
  const Batch batch = batch_of(random_tokens(1, 6, 11));
  const auto logits = [&](int64_t step) {
    return model->logits(batch, {.seed = 1, .step = step}).detach();
  };
  EXPECT_TRUE(logits(1).equal(logits(1)));
  EXPECT_FALSE(logits(1).equal(logits(2)));
  model->eval();
  EXPECT_TRUE(logits(1).equal(logits(2)));
  model->train();
  EXPECT_FALSE(logits(1).equal(logits(2)));
}

TEST(Model, CountsTheLossOfTargetsAlone) {
  const auto model = make_model(small_model("decoder_lm", "none", kNormalised));
  Batch batch = batch_of(random_tokens(2, 3, 11));
  batch.targets = at::tensor(std::vector<int64_t>{4, -1, 2, -1, -1, 0}).view({2, 3});
  const Loss loss = model->loss(batch, {});
  const at::Tensor logs = at::log_softmax(model->logits(batch, {}), -1).detach();
  const double want = -(logs[0][0][4] + logs[0][2][2] + logs[1][2][0]).item<double>();
  EXPECT_NEAR(loss.sum.item<double>(), want, 1e-5);
  EXPECT_EQ(loss.count, 3);
  EXPECT_EQ(loss.by_target[0][1].item<double>(), 0);
  EXPECT_NEAR(loss.by_target[1][2].item<double>(), -logs[1][2][0].item<double>(), 1e-6);
  const at::Tensor best = logs.argmax(-1);
  batch.targets = best.clone();
  EXPECT_EQ(model->loss(batch, {}).right, 6);
}

TEST(Model, SaysWhichEncodingsAnAttentionServes) {
  const std::string text = message_of(
      [] { make_model(small_model("decoder_lm", "shaw:clip=8", kNormalised)); });
  EXPECT_THAT(text,
              HasSubstr("encoding 'shaw:clip=8' cannot be used with causal linear "
                        "attention; expected one of alibi, conv_spe, decay, "));
  EXPECT_EQ(text.find("huang"), std::string::npos);
  EXPECT_THAT(
      message_of([] {
        make_model(small_model("classifier", "rope:layout=half,xpos=true", "exact"));
      }),
      HasSubstr("cannot be used with full exact attention; expected one of "
                "alibi, "));
}

TEST(Model, SaysWhatAConfigMayHold) {
  const auto refused = [](auto change) {
    ModelConfig config = small_model("decoder_lm", "none", kNormalised);
    change(config);
    return message_of([&] { make_model(config); });
  };
  EXPECT_THAT(refused([](auto& c) { c.model = "decoder"; }),
              HasSubstr("unknown model 'decoder'; did you mean 'decoder_lm'? expected "
                        "one of classifier, decoder_lm, "));
  EXPECT_EQ(refused([](auto& c) { c.dim = 15; }),
            "model.dim: expected a multiple of heads = 2, got 15");
  EXPECT_EQ(refused([](auto& c) { c.norm = "batch"; }),
            "expected norm one of rms, layer, got 'batch'");
  EXPECT_THAT(refused([](auto& c) { c.attention = "exakt"; }),
              HasSubstr("expected one of exact, linear"));
  EXPECT_THAT(refused([](auto& c) { c.attention = "exact:windw=3"; }),
              HasSubstr("unknown option 'windw'"));
  EXPECT_THAT(refused([](auto& c) { c.encoding = "roep:layout=half"; }),
              HasSubstr("unknown encoding 'roep'"));
  EXPECT_THAT(refused([](auto& c) { c.dropout = 1; }),
              HasSubstr("model.dropout: expected 0 <= dropout < 1"));
}

TEST(Model, KnowsWhichNamesThereAreBeforeItIsMade) {
  const auto refused = [](const std::string& attention, const std::string& encoding) {
    ModelConfig config;
    config.layers = 2, config.attention = attention, config.encoding = encoding;
    return message_of([&] { check_names(config); });
  };
  ModelConfig known;
  known.layers = 2, known.attention = "gated_deltanet; exact", known.encoding = "rope";
  EXPECT_NO_THROW(check_names(known));
  EXPECT_THAT(refused("exact; lineer:map=elu1", "rope"),
              StartsWith("model.attention: unknown attention 'lineer'; did you mean "
                         "'linear'?"));
  EXPECT_THAT(refused("exact", "roep:layout=half"),
              StartsWith("model.encoding: unknown encoding 'roep'"));
}

TEST(Model, MayBePostNormWithLayerNorms) {
  ModelConfig config = small_model("decoder_lm", "none", kNormalised);
  config.pre_norm = false, config.norm = "layer", config.tied = false;
  const auto model = make_model(config);
  Batch batch = batch_of(random_tokens(2, 5, 11));
  batch.targets = random_tokens(2, 5, 11, 2);
  model->loss(batch, {}).sum.backward();
  expect_gradients(*model);
}

}  // namespace
}  // namespace lagwise
