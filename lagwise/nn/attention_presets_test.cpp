#include "lagwise/nn/attention_presets.h"

#include <gmock/gmock.h>

#include <stdexcept>

#include "lagwise/nn/mixer.h"

namespace lagwise::nn {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Mixer> made(const std::string& attention, bool causal = true) {
  const HeadShape shape{.heads = 2, .dim = 8};
  return make_mixer(attention, {.shape = shape, .causal = causal}, "none",
                    make_encoding_for(attention, "none", shape), {});
}

TEST(AttentionPresets, AreTextsThatMakeAnAttention) {
  for (const AttentionPreset& preset : attention_presets()) {
    SCOPED_TRACE(preset.name);
    EXPECT_TRUE(made(std::string(preset.name)) != nullptr);
    EXPECT_TRUE(made(std::string(preset.text)) != nullptr);
    EXPECT_TRUE(preset.paper.starts_with("arXiv:"));
    EXPECT_FALSE(preset.note.empty());
  }
}

TEST(AttentionPresets, AskForWhatTheirModelsHave) {
  const MemoryOptions gated_delta = made("gated_deltanet")->memory();
  EXPECT_TRUE(gated_delta.forgets && gated_delta.rewrites && gated_delta.gates_output);
  EXPECT_EQ(gated_delta.convolution, 4);
  EXPECT_FALSE(made("deltanet")->memory().forgets);
  EXPECT_FALSE(made("mamba2-like")->memory().rewrites);
  EXPECT_TRUE(made("forgetting_transformer")->memory().forgets);
  EXPECT_FALSE(made("retnet")->memory().forgets);
}

TEST(AttentionPresets, TakeOptionsOverTheirOwn) {
  EXPECT_EQ(expand_preset("forgetting_transformer:window=9"),
            "exact:forget=gated,window=9");
  EXPECT_EQ(expand_preset("deltanet:conv=2,norm=none"),
            "linear:conv=2,map=none,norm=none,write=delta");
  EXPECT_EQ(expand_preset("linear:map=elu1"), "linear:map=elu1");
  EXPECT_THROW(made("deltanet:convolution=2"), std::invalid_argument);
}

TEST(AttentionPresets, AreKeptAsTheTextTheyStandFor) {
  EXPECT_EQ(expand_presets("2*forgetting_transformer | linear"),
            "2*exact:forget=gated; linear");
  EXPECT_EQ(expand_presets("linear;;"), "linear;;");
}

TEST(AttentionPresets, AreAmongTheNamesOfAMessage) {
  try {
    made("gated_deltanot");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown attention 'gated_deltanot'"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'gated_deltanet'"));
    EXPECT_THAT(error.what(), HasSubstr("exact, linear, retnet, "));
  }
}

TEST(AttentionPresets, ThatForgetNeedAnOrder) {
  try {
    made("gated_deltanet", false);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "linear: expected causal attention with forget=gated, write=delta or "
                 "conv, got full attention, where rows have no order to forget in");
  }
  EXPECT_TRUE(made("linear:gate_output=true", false) != nullptr);
}

}  // namespace
}  // namespace lagwise::nn
