#include "lagwise/train/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include "lagwise/core/errors.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;

const std::vector<float> kLogits = {0.5F, 2.0F, -1.0F, 1.0F, 2.0F};

struct OddOnly : data::Grammar {
  bool legal(int32_t id) const override { return id % 2 == 1; }
  void advance(int32_t) override {}
};

struct Nothing : data::Grammar {
  bool legal(int32_t) const override { return false; }
  void advance(int32_t) override {}
};

std::set<int64_t> drawn(const Sampling& sampling,
                        const data::Grammar* grammar = nullptr) {
  Sampler sampler(sampling, 0);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 3000; ++i) seen.insert(sampler.pick(kLogits, i, grammar));
  return seen;
}

/// Frequencies of 20000 draws lie within 5 sigma of the softmax.
void expect_softmax(double temperature, uint64_t seed) {
  constexpr int64_t kDraws = 20000;
  Sampler sampler({.temperature = temperature, .seed = seed}, 3);
  std::vector<double> count(kLogits.size());
  for (int64_t i = 0; i < kDraws; ++i)
    count[static_cast<size_t>(sampler.pick(kLogits, i))] += 1;
  double sum = 0;
  for (const float x : kLogits) sum += std::exp(x / temperature);
  for (size_t i = 0; i < kLogits.size(); ++i) {
    const double p = std::exp(kLogits[i] / temperature) / sum;
    const double sigma = std::sqrt(p * (1 - p) / kDraws);
    EXPECT_NEAR(count[i] / kDraws, p, 5 * sigma) << "token " << i << ", seed " << seed;
  }
}

TEST(Sampling, FollowsTheSoftmaxAtAnyTemperature) {
  for (uint64_t seed = 1; seed <= 5; ++seed)
    for (const double temperature : {0.5, 1.0, 3.0}) expect_softmax(temperature, seed);
}

TEST(Sampling, IsGreedyAtTemperatureZeroAndTakesTheFirstOfEquals) {
  EXPECT_EQ(drawn({.temperature = 0}), std::set<int64_t>{1});
  EXPECT_EQ(drawn({.top_k = 1}), std::set<int64_t>{1});
  EXPECT_EQ(drawn({.top_p = 0}), std::set<int64_t>{1});
}

TEST(Sampling, KeepsTheTopK) {
  EXPECT_EQ(drawn({.top_k = 2}), (std::set<int64_t>{1, 4}));
  EXPECT_EQ(drawn({.top_k = 3}), (std::set<int64_t>{1, 3, 4}));
  EXPECT_EQ(drawn({.top_k = 99}), (std::set<int64_t>{0, 1, 2, 3, 4}));
}

// Of e^2, e^2, e, e^0.5, e^-1: 0.383, 0.383, 0.141, 0.085, 0.019... in falling order.
TEST(Sampling, KeepsTheFewestTokensThatExceedTopP) {
  EXPECT_EQ(drawn({.top_p = 0.3}), std::set<int64_t>{1});
  EXPECT_EQ(drawn({.top_p = 0.5}), (std::set<int64_t>{1, 4}));
  EXPECT_EQ(drawn({.top_p = 0.8}), (std::set<int64_t>{1, 3, 4}));
  EXPECT_EQ(drawn({.top_p = 0.95}), (std::set<int64_t>{0, 1, 3, 4}));
  EXPECT_EQ(drawn({.top_p = 1}), (std::set<int64_t>{0, 1, 2, 3, 4}));
  // Of the top k alone: 0.4 of two equal ones is one of them.
  EXPECT_EQ(drawn({.top_k = 2, .top_p = 0.4}), std::set<int64_t>{1});
}

TEST(Sampling, DrawsLegalTokensOnly) {
  const OddOnly odd;
  EXPECT_EQ(drawn({}, &odd), (std::set<int64_t>{1, 3}));
  EXPECT_EQ(drawn({.top_k = 4}, &odd), (std::set<int64_t>{1, 3}));
  const Nothing nothing;
  EXPECT_EQ(drawn({}, &nothing), std::set<int64_t>{-1});
}

TEST(Sampling, IsAFunctionOfSeedSampleAndPosition) {
  const auto draws = [](uint64_t seed, int64_t sample, int64_t first) {
    Sampler sampler({.seed = seed}, sample);
    std::vector<int64_t> found;
    for (int64_t i = 0; i < 50; ++i) found.push_back(sampler.pick(kLogits, first + i));
    return found;
  };
  EXPECT_EQ(draws(1, 2, 0), draws(1, 2, 0));
  EXPECT_NE(draws(1, 2, 0), draws(2, 2, 0));
  EXPECT_NE(draws(1, 2, 0), draws(1, 3, 0));
  EXPECT_NE(draws(1, 2, 0), draws(1, 2, 50));
}

TEST(Sampling, BearsLogitsWithoutEndButNotNumbersThatAreNone) {
  const float inf = std::numeric_limits<float>::infinity();
  Sampler sampler({}, 0);
  const std::vector<float> masked = {-inf, -inf, 0.0F};
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(sampler.pick(masked, i), 2);
  const std::vector<float> sure = {0.0F, inf, 1.0F};
  EXPECT_EQ(sampler.pick(sure, 0), 1);
  const std::vector<float> broken = {0.0F, NAN};
  EXPECT_THROW(sampler.pick(broken, 0), Diverged);
}

TEST(Sampling, NamesWhatIsLegal) {
  const auto refusal = [](const Sampling& sampling) -> std::string {
    try {
      Sampler sampler(sampling, 0);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({.temperature = -1}), HasSubstr("temperature: expected"));
  EXPECT_THAT(refusal({.temperature = NAN}), HasSubstr("temperature: expected"));
  EXPECT_THAT(refusal({.top_k = -1}), HasSubstr("top-k: expected 0 (all tokens)"));
  EXPECT_THAT(refusal({.top_p = 1.5}), HasSubstr("top-p: expected a number from 0"));
}

}  // namespace
}  // namespace lagwise
