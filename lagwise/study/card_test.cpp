#include "lagwise/study/card.h"

#include <gtest/gtest.h>

namespace lagwise {
namespace {

TEST(Card, IsNamedApartForOtherSettingsAndLongPrompts) {
  const Sample sample{0, "x", "", {}};
  EXPECT_EQ(card_name(sample, {.temperature = 0.5, .seed = 3}), "x-seed3-t0.5-1");
  EXPECT_EQ(card_name(sample, {.top_k = 40, .top_p = 0.9}), "x-seed0-k40-p0.9-1");
  EXPECT_EQ(card_name(sample, {.min_p = 0.1, .repetition_penalty = 1.2}),
            "x-seed0-m0.1-r1.2-1");
  EXPECT_EQ(card_name(sample, {.repetition_penalty = 2, .repetition_window = 8}),
            "x-seed0-r2-w8-1");
  const std::string same(40, 'a');
  EXPECT_NE(card_name({0, same + "b", "", {}}, {}),
            card_name({0, same + "c", "", {}}, {}));
}

TEST(Card, IsNamedForPromptSeedAndIndex) {
  EXPECT_EQ(card_name({2, "To be, or NOT to be?", "", {}}, {.seed = 7}),
            "to-be-or-not-to-be-seed7-3");
  EXPECT_EQ(card_name({0, "", "", {}}, {}), "no-prompt-seed0-1");
  EXPECT_EQ(card_name({0, "songs/My Song.mid", "", {}}, {}), "my-song-seed0-1");
}

}  // namespace
}  // namespace lagwise
