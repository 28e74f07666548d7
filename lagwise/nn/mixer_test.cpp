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
  EXPECT_THAT(refusal("exact", "rope:layout=half,xpos=true", true),
              HasSubstr("causal exact attention"));
  EXPECT_THAT(refusal("linear", "lrpe:decay=alibi", false),
              HasSubstr("full linear attention"));
}

/// Every encoding with every attention its maths allows: what is not served is listed,
/// with the reason, in encodings/README.md.
TEST(Mixer, ServesEveryEncodingWithEveryAttentionItsMathsAllows) {
  const auto served = [](const char* text) {
    return std::vector<bool>{
        refusal("exact", text, true).empty(), refusal("exact", text, false).empty(),
        refusal("linear", text, true).empty(), refusal("linear", text, false).empty()};
  };
  const std::vector<bool> all(4, true), exact_alone = {true, true, false, false};
  for (const EncodingRow& row : encodings()) {
    const bool by_query =
        row.name == "shaw" || row.name == "huang" || row.name == "transformer_xl";
    EXPECT_EQ(served(std::string(row.text()).c_str()), by_query ? exact_alone : all)
        << row.name;
  }
  for (const char* text :
       {"decay:kind=learned", "kerple:kind=power", "sinusoidal:decay=retnet",
        "sine_spe:decay=alibi", "sine_spe:noise=exact,decay=alibi"})
    EXPECT_EQ(served(text), all) << text;
  EXPECT_EQ(served("lrpe:decay=alibi"), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(served("rope:layout=half,xpos=true"),
            (std::vector<bool>{false, false, true, false}));
  EXPECT_EQ(served("rope:layout=half,xpos=scores"), exact_alone);
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
