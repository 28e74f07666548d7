#include "lagwise/core/layer_texts.h"

#include <gmock/gmock.h>

#include <stdexcept>

namespace lagwise {
namespace {

using ::testing::ElementsAre;

std::string refusal_of(const char* text, int64_t layers) {
  try {
    texts_by_layer("model.attention", text, layers);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(LayerTexts, TakesOneTextForAllLayers) {
  EXPECT_THAT(texts_by_layer("a", "linear:map=elu1", 3),
              ElementsAre("linear:map=elu1", "linear:map=elu1", "linear:map=elu1"));
  EXPECT_THAT(texts_by_layer("a", "linear:map=favor:features=8;norms=chi", 2),
              ElementsAre("linear:map=favor:features=8;norms=chi",
                          "linear:map=favor:features=8;norms=chi"));
}

TEST(LayerTexts, TakesOneForEachPartedByEitherMark) {
  EXPECT_THAT(texts_by_layer("a", "linear; exact:window=4", 2),
              ElementsAre("linear", "exact:window=4"));
  EXPECT_THAT(texts_by_layer("a", "linear:map=favor:features=8;norms=chi; exact", 2),
              ElementsAre("linear:map=favor:features=8;norms=chi", "exact"));
  EXPECT_THAT(texts_by_layer("a", "linear:map=favor:features=8;norms=chi|exact", 2),
              ElementsAre("linear:map=favor:features=8;norms=chi", "exact"));
}

TEST(LayerTexts, RepeatsATextByItsCount) {
  EXPECT_THAT(texts_by_layer("a", "2*linear; exact", 3),
              ElementsAre("linear", "linear", "exact"));
  EXPECT_THAT(texts_by_layer("a", "1 * exact|2 * linear", 3),
              ElementsAre("exact", "linear", "linear"));
  EXPECT_THAT(texts_by_layer("a", "3*linear", 3),
              ElementsAre("linear", "linear", "linear"));
}

TEST(LayerTexts, RefusesAnotherNumberThanTheLayers) {
  EXPECT_EQ(refusal_of("linear; exact", 3),
            "model.attention: expected one text for all layers, or one for each of "
            "model.layers = 3, got 2 in 'linear; exact'");
  EXPECT_NE(refusal_of("4*linear; exact", 3), "");
  EXPECT_NE(refusal_of("2*linear", 3), "");
}

TEST(LayerTexts, RefusesWhatIsNoList) {
  EXPECT_EQ(refusal_of("linear;;exact", 3),
            "model.attention: expected a name between every two ';' in "
            "'linear;;exact'");
  EXPECT_EQ(refusal_of("0*linear", 3),
            "model.attention: expected a count from 1 to 100000 and a text around '*', "
            "got '0*linear'");
  for (const char* bad : {"2*", "*exact", "2 2*exact"})
    EXPECT_NE(refusal_of(bad, 2), "") << bad;
}

TEST(LayerTexts, RewritesEachSpec) {
  const auto louder = [](const std::string& spec) { return spec + "!"; };
  EXPECT_EQ(rewrite_layer_texts("a", "none", louder), "none!");
  EXPECT_EQ(rewrite_layer_texts("a", "2*none | alibi", louder), "2*none!; alibi!");
}

}  // namespace
}  // namespace lagwise
