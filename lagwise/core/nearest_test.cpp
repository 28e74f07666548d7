#include "lagwise/core/nearest.h"

#include <gtest/gtest.h>

namespace lagwise {
namespace {

TEST(EditDistance, CountsSlips) {
  EXPECT_EQ(edit_distance("alibi", "alibi"), 0u);
  EXPECT_EQ(edit_distance("", "rope"), 4u);
  EXPECT_EQ(edit_distance("rope", ""), 4u);
  EXPECT_EQ(edit_distance("alib", "alibi"), 1u);
  EXPECT_EQ(edit_distance("alibbi", "alibi"), 1u);
  EXPECT_EQ(edit_distance("olibi", "alibi"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(EditDistance, CountsSwappedNeighboursOnce) {
  EXPECT_EQ(edit_distance("dcotor", "doctor"), 1u);
  EXPECT_EQ(edit_distance("ba", "ab"), 1u);
}

TEST(Nearest, FindsTheWordThatWasMeant) {
  const std::vector<std::string> verbs = {"bench", "doctor", "train"};
  EXPECT_EQ(nearest("dcotor", verbs), "doctor");
  EXPECT_EQ(nearest("bnech", verbs), "bench");
  EXPECT_EQ(nearest("trian", verbs), "train");
}

TEST(Nearest, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest("zebra", {"bench", "doctor"}), "");
  EXPECT_EQ(nearest("x", {"y"}), "");
  EXPECT_EQ(nearest("anything", {}), "");
}

TEST(Nearest, PrefersTheFirstOfEquals) {
  EXPECT_EQ(nearest("cat", {"car", "can"}), "car");
}

TEST(DidYouMean, EndsASentence) {
  EXPECT_EQ(did_you_mean("exponant", {"exponent"}), "; did you mean 'exponent'?");
  EXPECT_EQ(did_you_mean("zebra", {"exponent"}), "");
}

}  // namespace
}  // namespace lagwise
