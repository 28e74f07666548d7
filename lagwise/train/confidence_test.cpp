#include "lagwise/train/confidence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lagwise/core/noise.h"

namespace lagwise {
namespace {

TEST(Confidence, KnowsTheQuantilesOfStudentsT) {
  EXPECT_NEAR(student_t(1), 12.706, 1e-3);
  EXPECT_NEAR(student_t(4), 2.776, 1e-3);
  EXPECT_NEAR(student_t(5), 2.571, 5e-3);
  EXPECT_NEAR(student_t(10), 2.228, 1e-3);
  EXPECT_NEAR(student_t(30), 2.042, 1e-3);
  EXPECT_NEAR(student_t(1000000), 1.960, 1e-3);
}

TEST(Confidence, IsTheUsualErrorForEqualCounts) {
  const std::vector<double> sums = {4, 8, 6, 10}, counts(4, 2);
  const Interval found = mean_of_windows(sums, counts);
  EXPECT_DOUBLE_EQ(found.mean, 3.5);  // of 2, 4, 3, 5
  const double variance = (2.25 + 0.25 + 0.25 + 2.25) / 3;
  EXPECT_NEAR(found.error, student_t(3) * std::sqrt(variance / 4), 1e-12);
}

TEST(Confidence, LeavesOutEmptyWindowsAndOwnsUpToTooFew) {
  const std::vector<double> sums = {4, 0, 6}, counts = {2, 0, 2};
  const std::vector<double> two = {4, 6}, both = {2, 2};
  EXPECT_DOUBLE_EQ(mean_of_windows(sums, counts).error,
                   mean_of_windows(two, both).error);
  const std::vector<double> one = {4}, alone = {2}, none = {0};
  EXPECT_DOUBLE_EQ(mean_of_windows(one, alone).mean, 2);
  EXPECT_TRUE(std::isinf(mean_of_windows(one, alone).error));
  EXPECT_TRUE(std::isnan(mean_of_windows(none, none).mean));
}

TEST(Confidence, IsSureOfASignOnlyWhereTheDifferenceShows) {
  EXPECT_EQ(sure_sign({-0.02, 0.01}), -1);
  EXPECT_EQ(sure_sign({0.02, 0.01}), 1);
  EXPECT_EQ(sure_sign({-0.02, 0.03}), 0);
  EXPECT_EQ(sure_sign({0.0004, 0.0001}), 0);
  EXPECT_EQ(sure_sign({1, INFINITY}), 0);
  EXPECT_EQ(sure_sign({NAN, 0.1}), 0);
}

// 2000 intervals of 6 unequal windows: 95 % hold the truth, within 5 sigma (0.5 %
// each), and one more percent for the ratio of two sums.
TEST(Confidence, HoldsTheTruthNineteenTimesInTwenty) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const NoiseRow noise = Noise(seed).at({});
    int held = 0;
    for (int64_t trial = 0; trial < 2000; ++trial) {
      std::vector<double> sums, counts;
      for (int64_t w = 0; w < 6; ++w) {
        counts.push_back(w < 3 ? 10 : 9);
        sums.push_back(counts.back() * (3 + noise.normal(trial * 6 + w)));
      }
      const Interval found = mean_of_windows(sums, counts);
      held += std::abs(found.mean - 3) <= found.error;
    }
    EXPECT_NEAR(held / 2000.0, 0.95, 0.035) << "seed " << seed;
  }
}

}  // namespace
}  // namespace lagwise
