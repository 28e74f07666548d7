#include "lagwise/encodings/permutation_powers.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace lagwise {
namespace {

using Permutation = std::vector<int64_t>;

/// pi^s by applying pi s times.
Permutation by_steps(const Permutation& pi, int64_t s) {
  Permutation power(pi.size());
  for (size_t j = 0; j < pi.size(); ++j) {
    auto at = static_cast<int64_t>(j);
    for (int64_t i = 0; i < s; ++i) at = pi[size_t(at)];
    power[j] = at;
  }
  return power;
}

TEST(PermutationPowers, EqualRepeatedSteps) {
  const Permutation pi = {7, 2, 4, 1, 6, 3, 0, 5, 8};
  const PermutationPowers powers(pi);
  for (const int64_t s : {0, 1, 2, 3, 4, 7, 300}) {
    const Permutation want = by_steps(pi, s);
    for (int64_t j = 0; j < 9; ++j) {
      EXPECT_EQ(powers.at(j, s), want[size_t(j)]);
      EXPECT_EQ(powers.at(want[size_t(j)], -s), j);
    }
  }
}

TEST(PermutationPowers, ReachFarPositionsThroughTheOrder) {
  const Permutation pi = long_permutation(64, 3);
  const PermutationPowers powers(pi);
  const auto order = static_cast<int64_t>(powers.order());
  EXPECT_GE(order, 720);  // the median of random ones; the best of 64 is far above
  const int64_t far = 1'000'000'000'000 / order * order;
  for (int64_t j = 0; j < 64; ++j) {
    EXPECT_EQ(powers.at(j, order), j);
    EXPECT_EQ(powers.at(j, far + 5), powers.at(j, 5));
  }
  bool returned = true;  // no smaller power is the identity: try the order over a prime
  for (int64_t j = 0; j < 64; ++j) returned = returned && powers.at(j, order / 2) == j;
  EXPECT_FALSE(order % 2 == 0 && returned);
}

TEST(PermutationPowers, TabulateRowsOfIndices) {
  const PermutationPowers powers({1, 2, 0});
  const auto table = powers.table(at::tensor({0., 1., 1000000.}));
  EXPECT_TRUE(at::equal(
      table, at::tensor({0, 1, 2, 1, 2, 0, 1, 2, 0}).view({3, 3}).to(at::kLong)));
}

TEST(PermutationPowers, KnowTheirOrder) {
  EXPECT_EQ(PermutationPowers({}).order(), 1);
  EXPECT_EQ(PermutationPowers({0, 1}).order(), 1);
  EXPECT_EQ(PermutationPowers({1, 2, 0, 4, 3}).order(), 6);
  EXPECT_EQ(PermutationPowers({1, 2, 3, 0, 5, 4}).order(), 4);
}

TEST(PermutationPowers, RefuseWhatIsNoPermutation) {
  EXPECT_THROW(PermutationPowers({0, 0}), std::invalid_argument);
  EXPECT_THROW(PermutationPowers({0, 2}), std::invalid_argument);
}

TEST(LongPermutation, IsAPermutationThatDependsOnTheSeedAlone) {
  for (const int64_t size : {1, 2, 8, 64}) {
    Permutation pi = long_permutation(size, 1);
    EXPECT_EQ(pi, long_permutation(size, 1));
    std::sort(pi.begin(), pi.end());
    for (int64_t j = 0; j < size; ++j) EXPECT_EQ(pi[size_t(j)], j);
  }
  EXPECT_NE(long_permutation(64, 1), long_permutation(64, 2));
}

}  // namespace
}  // namespace lagwise
