#include <cmath>

#include "lagwise/encodings/testing_scores.h"

namespace lagwise {
namespace {

TEST(Shaw, AddsVectorsByClippedLagToKeysAndValues) {
  for (const int64_t clip : {0, 2, 40}) {
    const auto shaw = make_encoding("shaw:clip=" + std::to_string(clip),
                                    {.heads = 2, .dim = 4, .value_dim = 3});
    const Layer layer = testing::double_layer(*shaw);
    const double* table = layer["rel_k"].data_ptr<double>();
    const auto row = [&](int64_t lag) { return std::clamp(-lag, -clip, clip) + clip; };
    testing::expect_scores(
        *shaw, layer,
        [&](int64_t, const double* q, const double* k, int64_t lag, const auto&) {
          return (testing::dot(q, k, 4) + testing::dot(q, table + row(lag) * 4, 4)) / 2;
        });
    const at::Tensor x = testing::random_rows(2, 6, 4, 1);
    const Encoded to =
        encode_once(*shaw, x, x, testing::placed(3, 0, true), {}, &layer);
    ASSERT_EQ(to.lag_values.sizes(), at::IntArrayRef({1, 11, 3}));
    for (int64_t c = 0; c < 11; ++c)
      EXPECT_TRUE(to.lag_values[0][c].equal(layer["rel_v"][row(c - 5 + 3)]));
  }
}

TEST(Shaw, SendsGradientsToBothTables) {
  const auto shaw = make_encoding("shaw:clip=3", {.heads = 2, .dim = 4});
  Layer layer = testing::double_layer(*shaw);
  testing::expect_gradients(*shaw, layer);
}

TEST(Shaw, LeavesValuesAloneWhenTold) {
  const auto shaw = make_encoding("shaw:values=false", {.heads = 2, .dim = 4});
  EXPECT_EQ(shaw->layer(0, 1).size(), 1U);
  const at::Tensor x = testing::random_rows(2, 6, 4, 1).to(at::kFloat);
  EXPECT_FALSE(encode_once(*shaw, x, x, {}).lag_values.defined());
}

TEST(Shaw, RefusesPositionsAndANegativeClip) {
  const auto shaw = make_encoding("shaw", {.heads = 2, .dim = 4});
  testing::expect_refuses_positions(*shaw);
  EXPECT_NE(testing::refusal([] {
              make_encoding("shaw:clip=-1", {2, 3});
            }).find("expected clip >= 0, got -1"),
            std::string::npos);
}

}  // namespace
}  // namespace lagwise
