#include "lagwise/nn/mixer.h"

#include <gmock/gmock.h>

#include <stdexcept>

namespace lagwise::nn {
namespace {

using ::testing::HasSubstr;

std::string refusal(const char* attention, const char* encoding, bool causal) {
  const HeadShape shape{.heads = 2, .dim = 8};
  try {
    make_mixer(attention, {.shape = shape, .causal = causal}, encoding,
               make_encoding_for(attention, encoding, shape), {});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Mixer, ListsTheEncodingsItsAttentionServes) {
  EXPECT_THAT(refusal("linear", "shaw", true),
              HasSubstr("encoding 'shaw' cannot be used with causal linear attention; "
                        "expected one of alibi, "));
  EXPECT_THAT(refusal("exact", "decay", true), HasSubstr("causal exact attention"));
  EXPECT_THAT(refusal("linear", "decay", false), HasSubstr("full linear attention"));
  EXPECT_EQ(refusal("linear", "decay", true), "");
  EXPECT_EQ(refusal("linear", "t5", false), "");
}

TEST(Mixer, NamesTheAttentionsThereAre) {
  const HeadShape shape{.heads = 2, .dim = 8};
  try {
    make_mixer("liner", {.shape = shape}, "none", make_encoding("none", shape), {});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown attention 'liner'"));
    EXPECT_THAT(error.what(), HasSubstr("expected one of exact, linear"));
  }
}

TEST(Mixer, MakesAnEncodingAfterTheMapAsWideAsTheFeatures) {
  const HeadShape shape{.heads = 2, .dim = 8};
  const char* favor = "linear:map=favor:features=12";
  EXPECT_EQ(make_encoding_for(favor, "rope:layout=half", shape)->shape().dim, 12);
  EXPECT_EQ(make_encoding_for("linear", "rope:layout=half", shape)->shape().dim, 8);
  EXPECT_EQ(make_encoding_for("exact", "rope:layout=half", shape)->shape().dim, 8);
  EXPECT_EQ(make_encoding_for(favor, "sine_spe", shape)->shape().dim, 8);
}

TEST(Mixer, RefusesAWindowBelowZero) {
  EXPECT_EQ(refusal("exact:window=-1", "none", true),
            "exact: expected window >= 0 (0: all keys), got -1");
}

}  // namespace
}  // namespace lagwise::nn
