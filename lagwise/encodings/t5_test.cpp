#include <cmath>

#include "lagwise/encodings/testing_scores.h"

namespace lagwise {
namespace {

// As the paper's code has it: relative = key - query.
int64_t bucket(int64_t relative, bool bidirectional, int64_t buckets,
               int64_t farthest) {
  int64_t first = 0, x = relative;
  if (bidirectional) {
    buckets /= 2;
    if (x > 0) first = buckets;
    x = std::abs(x);
  } else {
    x = -std::min<int64_t>(x, 0);
  }
  const int64_t exact = buckets / 2;
  if (x < exact) return first + x;
  const double part =
      std::log(double(x) / double(exact)) / std::log(double(farthest) / double(exact));
  const auto far = exact + int64_t(part * double(buckets - exact));
  return first + std::min(far, buckets - 1);
}

TEST(T5, AddsTheBiasOfItsBucketToTheUnscaledScore) {
  for (const auto& [text, buckets, farthest] :
       {std::tuple{"t5", 32, 128}, {"t5:buckets=20,max_distance=100", 20, 100}}) {
    const auto t5 = make_encoding(text, {.heads = 3, .dim = 5});
    const Layer layer = testing::double_layer(*t5);
    const at::Tensor weight = t5->shared()[0].second;
    testing::expect_scores(
        *t5, layer,
        [&](int64_t h, const double* q, const double* k, int64_t lag,
            const testing::ScoreCase& c) {
          return testing::dot(q, k, 5) +
                 weight.data_ptr<
                     double>()[bucket(-lag, !c.causal, buckets, farthest) * 3 + h];
        });
  }
}

// From the reference tensors: 32 buckets to distance 128.
TEST(T5, PutsKnownLagsIntoKnownBuckets) {
  EXPECT_EQ(bucket(-300, false, 32, 128), 31);
  EXPECT_EQ(bucket(-15, false, 32, 128), 15);
  EXPECT_EQ(bucket(5, false, 32, 128), 0);
  EXPECT_EQ(bucket(300, true, 32, 128), 31);
  EXPECT_EQ(bucket(-300, true, 32, 128), 15);
}

TEST(T5, SendsGradientsToItsTable) {
  const auto t5 = make_encoding("t5", {.heads = 3, .dim = 5});
  Layer layer = testing::double_layer(*t5);
  testing::expect_gradients(*t5, layer);
}

TEST(T5, RefusesPositionsAndBadOptions) {
  const auto t5 = make_encoding("t5", {.heads = 2, .dim = 3});
  testing::expect_refuses_positions(*t5);
  EXPECT_NE(testing::refusal([] {
              make_encoding("t5:buckets=7", {2, 3});
            }).find("even and at least 4, got 7"),
            std::string::npos);
  EXPECT_NE(testing::refusal([] {
              make_encoding("t5:max_distance=16", {2, 3});
            }).find("max_distance > buckets / 2 = 16, got 16"),
            std::string::npos);
}

}  // namespace
}  // namespace lagwise
