#include <cmath>

#include "lagwise/encodings/testing_scores.h"

namespace lagwise {
namespace {

// Slopes as the authors' code gives them, by number of heads.
TEST(Alibi, HasTheAuthorsSlopesForAnyNumberOfHeads) {
  const std::vector<std::vector<double>> known = {
      {1. / 256},
      {1. / 4, 1. / 16, 1. / 64, 1. / 256, 1. / 2, 1. / 8},
      {.5, .25, .125, .0625, .03125, 1. / 64, 1. / 128, 1. / 256, std::exp2(-0.5),
       std::exp2(-1.5), std::exp2(-2.5), std::exp2(-3.5)}};
  for (const auto& slopes : known) {
    const auto heads = static_cast<int64_t>(slopes.size());
    const auto alibi = make_encoding("alibi", {.heads = heads, .dim = 4});
    const at::Tensor x = at::zeros({1, heads, 2, 4}, at::kDouble);
    const Encoded to = encode_once(*alibi, x, x, {});
    for (int64_t h = 0; h < heads; ++h) {
      EXPECT_DOUBLE_EQ(to.decay[h].item<double>(), -slopes[size_t(h)]);
      EXPECT_DOUBLE_EQ(to.lag_bias[h][2].item<double>(), -slopes[size_t(h)]);  // lag 1
    }
  }
}

TEST(Alibi, PenalisesDistanceAlikeOnBothSides) {
  const auto alibi = make_encoding("alibi:exponent=4", {.heads = 4, .dim = 3});
  testing::expect_scores(
      *alibi, {},
      [](int64_t h, const double* q, const double* k, int64_t lag, const auto&) {
        return testing::dot(q, k, 3) / std::sqrt(3.0) -
               std::exp2(-double(h + 1)) * std::abs(double(lag));
      });
}

TEST(Alibi, HandsOverADecayWhenCausalOnly) {
  const auto alibi = make_encoding("alibi", {.heads = 2, .dim = 3});
  const at::Tensor x = at::zeros({1, 2, 5, 3});
  EXPECT_TRUE(encode_once(*alibi, x, x, testing::placed(0, 0, true)).decay.defined());
  EXPECT_FALSE(encode_once(*alibi, x, x, testing::placed(0, 0, false)).decay.defined());
}

TEST(Alibi, RefusesPositionsAndASenselessExponent) {
  const auto alibi = make_encoding("alibi", {.heads = 2, .dim = 3});
  testing::expect_refuses_positions(*alibi);
  EXPECT_NE(testing::refusal([] {
              make_encoding("alibi:exponent=0", {2, 3});
            }).find("expected exponent > 0, got 0"),
            std::string::npos);
}

}  // namespace
}  // namespace lagwise
