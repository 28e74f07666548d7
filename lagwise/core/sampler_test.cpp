#include "lagwise/core/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/core/noise_streams.h"
#include "lagwise/core/nucleus.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;

const std::vector<float> kLogits = {0.5F, 2.0F, -1.0F, 1.0F, 2.0F};

struct OddOnly : Grammar {
  bool legal(int32_t id) const override { return id % 2 == 1; }
  void advance(int32_t) override {}
};

struct Nothing : Grammar {
  bool legal(int32_t) const override { return false; }
  void advance(int32_t) override {}
};

std::set<int64_t> drawn(const Sampling& sampling, const Grammar* grammar = nullptr) {
  Sampler sampler(sampling, 0);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 3000; ++i) seen.insert(sampler.pick(kLogits, i, {}, grammar));
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

// Of e^2, e^2, e, e^0.5, e^-1, the ratios to the largest: 1, 1, 0.37, 0.22, 0.05.
TEST(Sampling, KeepsWhatIsNotFarBelowTheLikeliest) {
  EXPECT_EQ(drawn({.min_p = 1}), (std::set<int64_t>{1, 4}));
  EXPECT_EQ(drawn({.min_p = 0.3}), (std::set<int64_t>{1, 3, 4}));
  EXPECT_EQ(drawn({.min_p = 0.1}), (std::set<int64_t>{0, 1, 3, 4}));
  EXPECT_EQ(drawn({.min_p = 0.01}), (std::set<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(drawn({.temperature = 3, .min_p = 0.3}),
            (std::set<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(drawn({.top_p = 0.3, .min_p = 0.3}), std::set<int64_t>{1});
  const OddOnly odd;
  EXPECT_EQ(drawn({.min_p = 0.5}, &odd), std::set<int64_t>{1});
}

TEST(Sampling, MakesWhatWasSaidLatelyLessLikely) {
  const auto greedy = [](double penalty, int64_t window,
                         const std::vector<int64_t>& history) {
    Sampler sampler(
        {.temperature = 0, .repetition_penalty = penalty, .repetition_window = window},
        0);
    return sampler.pick(kLogits, 0, history);
  };
  EXPECT_EQ(greedy(1, 64, {1}), 1);
  EXPECT_EQ(greedy(1.5, 64, {1}), 4);
  EXPECT_EQ(greedy(1.5, 64, {1, 4}), 1);      // 4/3, 4/3: still above 1
  EXPECT_EQ(greedy(3, 64, {4, 4, 1, 1}), 3);  // 2/3, counted once
  EXPECT_EQ(greedy(3, 1, {1, 4}), 1);         // 1 was said too long ago
  EXPECT_EQ(greedy(3, 0, {1, 4}), 1);
  EXPECT_EQ(greedy(3, 64, {-1, 99}), 1);  // no tokens at all
  EXPECT_EQ(greedy(0.1, 64, {3}), 3);     // below 1: more likely
}

/// The definition, with no cleverness: everything sorted, everything summed.
int64_t defined(const std::vector<float>& logits, const Sampling& sampling,
                int64_t sample, int64_t position, const std::vector<int64_t>& history) {
  std::vector<double> l(logits.begin(), logits.end());
  const int64_t from = std::ssize(history) - sampling.repetition_window;
  for (int64_t v = 0; v < std::ssize(l); ++v) {
    bool said = false;
    for (int64_t i = std::max<int64_t>(from, 0); i < std::ssize(history); ++i)
      said |= history[static_cast<size_t>(i)] == v;
    double& x = l[static_cast<size_t>(v)];
    if (said)
      x = x > 0 ? x / sampling.repetition_penalty : x * sampling.repetition_penalty;
  }
  std::vector<double> p = softmax(l, sampling.temperature);
  std::vector<int64_t> order = nucleus(p, 1).ids;
  if (sampling.top_k > 0 && std::ssize(order) > sampling.top_k)
    order.resize(static_cast<size_t>(sampling.top_k));
  std::vector<double> few(p.size());
  for (const int64_t v : order) few[static_cast<size_t>(v)] = p[static_cast<size_t>(v)];
  Nucleus kept = nucleus(few, sampling.top_p);
  double whole = 0;
  for (double& q : kept.probabilities) {
    if (q < sampling.min_p * kept.probabilities[0]) q = 0;
    whole += q;
  }
  const double goal = Noise(sampling.seed, streams::kSampling)
                          .at({.feature = sample})
                          .uniform(position);
  double reached = 0;
  for (size_t i = 0; i < kept.ids.size(); ++i) {
    reached += kept.probabilities[i] / whole;
    if (reached > goal) return kept.ids[i];
  }
  return -1;
}

TEST(Sampling, EqualsItsDefinition) {
  const NoiseRow chance = Noise(77).at({});
  int64_t at = 0;
  const auto dice = [&](double range) { return range * chance.uniform(at++); };
  for (int64_t round = 0; round < 2000; ++round) {
    std::vector<float> logits(1 + static_cast<size_t>(dice(60)));
    for (float& x : logits) x = static_cast<float>(std::floor(dice(40)) / 4 - 5);
    std::vector<int64_t> history(static_cast<size_t>(dice(20)));
    for (int64_t& token : history) token = static_cast<int64_t>(dice(60));
    const Sampling sampling = {.temperature = 0.2 + dice(2),
                               .top_k = static_cast<int64_t>(dice(20)),
                               .top_p = std::min(dice(1.5), 1.0),
                               .min_p = std::max(dice(1) - 0.5, 0.0),
                               .repetition_penalty = 0.5 + dice(2),
                               .repetition_window = static_cast<int64_t>(dice(20)),
                               .seed = static_cast<uint64_t>(round)};
    Sampler sampler(sampling, 3);
    for (int64_t position = 0; position < 5; ++position)
      ASSERT_EQ(sampler.pick(logits, position, history),
                defined(logits, sampling, 3, position, history))
          << "round " << round;
  }
}

TEST(LogProbability, IsThatOfTheWholeSoftmaxAtTemperatureOne) {
  std::vector<double> wide(kLogits.begin(), kLogits.end());
  const std::vector<double> p = softmax(wide);
  for (int64_t v = 0; v < std::ssize(p); ++v)
    EXPECT_NEAR(log_probability(kLogits, v), std::log(p[static_cast<size_t>(v)]),
                1e-12);
  const std::vector<float> far = {1000, 0};
  EXPECT_NEAR(log_probability(far, 1), -1000, 1e-9);
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> sure = {0, inf, -inf};
  EXPECT_EQ(log_probability(sure, 1), 0);
  EXPECT_EQ(log_probability(sure, 0), -inf);
  EXPECT_EQ(log_probability(sure, 2), -inf);
}

TEST(Stops, EndWithWhatWasWritten) {
  const std::vector<int64_t> tokens = {4, 5, 6};
  using Stops = std::vector<std::vector<int64_t>>;
  EXPECT_TRUE(ends_with_any(tokens, Stops{{6}}));
  EXPECT_TRUE(ends_with_any(tokens, Stops{{9}, {5, 6}}));
  EXPECT_TRUE(ends_with_any(tokens, Stops{{4, 5, 6}}));
  EXPECT_FALSE(ends_with_any(tokens, Stops{{5}, {4, 5}, {3, 4, 5, 6}}));
  EXPECT_FALSE(ends_with_any(tokens, Stops{{}}));
  EXPECT_FALSE(ends_with_any(tokens, Stops{}));
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
  EXPECT_THAT(refusal({.min_p = -0.1}), HasSubstr("min-p: expected a number from 0"));
  EXPECT_THAT(refusal({.min_p = NAN}), HasSubstr("min-p: expected a number from 0"));
  EXPECT_THAT(refusal({.repetition_penalty = 0}),
              HasSubstr("repetition-penalty: expected a number above 0, got 0.0"));
  EXPECT_THAT(refusal({.repetition_penalty = NAN}), HasSubstr("above 0"));
  EXPECT_THAT(refusal({.repetition_window = -3}),
              HasSubstr("repetition-window: expected 0 (no tokens) or more, got -3"));
}

}  // namespace
}  // namespace lagwise
