#include "lagwise/core/map_by_lag.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace lagwise {
namespace {

struct Map {
  Map(int64_t n, const std::function<double(int64_t, int64_t)>& entry) : n(n) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) numbers.push_back(entry(i, j));
  }
  MatView<const double> view() const { return {numbers.data(), n, n, n, 1}; }
  int64_t n;
  std::vector<double> numbers;
};

TEST(VarianceWithinLags, IsZeroForAFunctionOfTheLag) {
  const Map toeplitz(9, [](int64_t i, int64_t j) { return 1.0 / double(i - j + 20); });
  EXPECT_NEAR(variance_within_lags(toeplitz.view()), 0, 1e-15);
  const Map flat(9, [](int64_t, int64_t) { return 0.5; });
  EXPECT_EQ(variance_within_lags(flat.view()), 0);
}

TEST(VarianceWithinLags, IsThePartTheLagDoesNotExplain) {
  // Lag 0 holds 1, 3 and lag 1 holds 5: mean 3, squares 4 + 0 + 4; within 1 + 1.
  const Map map(2, [](int64_t i, int64_t j) { return i == 0 ? 1.0 : j == 1 ? 3 : 5; });
  EXPECT_NEAR(variance_within_lags(map.view()), 2.0 / 8, 1e-15);
  EXPECT_EQ(variance_within_lags(map.view(), {.first = 1}), 0);
  EXPECT_NEAR(variance_within_lags(map.view(), {.farthest = 0}), 1, 1e-15);
}

TEST(VarianceWithinLags, LeavesTheFutureOut) {
  const Map map(6, [](int64_t i, int64_t j) {
    return j > i ? double(7 * i + j) : double(i - j);
  });
  EXPECT_NEAR(variance_within_lags(map.view()), 0, 1e-15);
}

TEST(Inversions, CountPairsInTheWrongOrder) {
  const Map rising(8, [](int64_t i, int64_t j) { return j > i ? -1.0 : double(j); });
  EXPECT_EQ(inversions(rising.view()), 0);
  const Map falling(8, [](int64_t, int64_t j) { return -double(j); });
  EXPECT_EQ(inversions(falling.view()), 1);
  const Map flat(8, [](int64_t, int64_t) { return 1.0; });
  EXPECT_EQ(inversions(flat.view()), 0);
}

TEST(Inversions, LookNoFartherThanTold) {
  // Only lag 3 is out of order: rows 3, 4 have it against three nearer keys each.
  const Map map(5, [](int64_t i, int64_t j) { return i - j == 3 ? 9.0 : double(j); });
  EXPECT_EQ(inversions(map.view(), {.farthest = 2}), 0);
  EXPECT_EQ(inversions(map.view(), {.last = 3}), 0);
  EXPECT_NEAR(inversions(map.view()), 6.0 / (1 + 3 + 6 + 10), 1e-15);
}

TEST(MapByLag, OfNothingIsZero) {
  EXPECT_EQ(variance_within_lags({}), 0);
  EXPECT_EQ(inversions({}), 0);
  const double one = 3;
  EXPECT_EQ(inversions({&one, 1, 1, 1, 1}), 0);
}

}  // namespace
}  // namespace lagwise
