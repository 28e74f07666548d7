#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "lagwise/encodings/encoding.h"

namespace lagwise {
namespace {

/// The definition, channel by channel.
double by_definition(const std::string& layout, double p, int64_t channel, int64_t c) {
  const int64_t half = c / 2;
  int64_t j = 0;
  bool sine = false;
  if (layout == "interleaved") {
    j = channel / 2, sine = channel % 2 == 0;
  } else {
    if (channel >= 2 * half) return 0;
    j = channel % half, sine = channel < half;
  }
  const double exponent = layout == "tensor2tensor" ? double(j) / double(half - 1)
                                                    : 2 * double(j) / double(c);
  const double angle = p * std::pow(10000.0, -exponent);
  return sine ? std::sin(angle) : std::cos(angle);
}

TEST(Sinusoidal, MatchesTheDefinitionInEachLayout) {
  for (const char* layout : {"interleaved", "half", "tensor2tensor"}) {
    for (const int64_t c : {8, 6, 7}) {
      const auto encoding = make_encoding(std::string("sinusoidal:layout=") + layout,
                                          {.heads = 1, .dim = 4, .model_dim = c});
      const at::Tensor x = at::randn({2, 3, c}, at::kDouble);
      for (const int64_t start : {0, 300, 1'000'000}) {
        const at::Tensor e = encoding->embed(x, {.query_start = start}) - x;
        for (int64_t n = 0; n < 3; ++n)
          for (int64_t i = 0; i < c; ++i)
            EXPECT_NEAR(e[1][n][i].item<double>(),
                        by_definition(layout, double(start + n), i, c), 1e-9)
                << layout << " C " << c << " channel " << i;
      }
    }
  }
}

TEST(Sinusoidal, FollowsGivenPositionsAndSkipsRowsWithoutAPlace) {
  const auto encoding = make_encoding("sinusoidal", {.heads = 1, .dim = 6});
  const at::Tensor x = at::zeros({2, 4, 6}, at::kDouble);
  Placement at;
  at.query_at = at::tensor({5, 6, 7, 8, 0, 1, 2, 3}).view({2, 4});
  const at::Tensor e = encoding->embed(x, at);
  EXPECT_TRUE(at::equal(e[1], encoding->embed(x, {})[0]));
  EXPECT_TRUE(at::equal(e[0], encoding->embed(x, {.query_start = 5})[0]));
  const at::Tensor with_cls = encoding->embed(x, {.off_grid = 1});
  EXPECT_TRUE(with_cls[0][0].eq(0).all().item<bool>());
  EXPECT_TRUE(at::equal(with_cls[0].narrow(0, 1, 3),
                        encoding->embed(x, {})[0].narrow(0, 0, 3)));
}

TEST(Sinusoidal, HandsOverADecayWhereOneIsAskedFor) {
  const auto plain = make_encoding("sinusoidal", {.heads = 4, .dim = 8});
  const auto fading = make_encoding("sinusoidal:decay=alibi", {.heads = 4, .dim = 8});
  const at::Tensor q = at::randn({1, 4, 3, 8}, at::kDouble);
  EXPECT_FALSE(plain->encode(q, q, {}, {}, {}).decay.defined());
  const at::Tensor want =
      -at::tensor({1. / 4, 1. / 16, 1. / 64, 1. / 256}, at::kDouble);
  EXPECT_TRUE(at::allclose(fading->encode(q, q, {}, {}, {}).decay, want));
  const Encoded e = fading->encode(q, q, {}, {}, {});  // as a bias, to other attention
  EXPECT_TRUE(at::allclose(e.lag_bias.select(1, 4), 2 * want));
  EXPECT_TRUE(fading->traits().exact && fading->traits().linear_full);
}

TEST(Sinusoidal, RefusesAWidthThatItsLayoutCannotFill) {
  EXPECT_THROW(make_encoding("sinusoidal:layout=tensor2tensor", {.heads = 1, .dim = 3}),
               std::invalid_argument);
  EXPECT_THROW(make_encoding("sinusoidal:base=1", {.heads = 1, .dim = 8}),
               std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
