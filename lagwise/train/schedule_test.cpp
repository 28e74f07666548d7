#include "lagwise/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lagwise {
namespace {

TrainConfig config(const char* schedule, int64_t warmup) {
  TrainConfig train;
  train.steps = 1000, train.warmup = warmup, train.lr = 0.5, train.final_lr = 0.1;
  train.schedule = schedule;
  return train;
}

TEST(Schedule, RisesInEqualStepsWhileWarmingUp) {
  for (const char* schedule : {"cosine", "constant"}) {
    EXPECT_DOUBLE_EQ(learning_rate(config(schedule, 100), 1), 0.005);
    EXPECT_DOUBLE_EQ(learning_rate(config(schedule, 100), 50), 0.25);
    EXPECT_DOUBLE_EQ(learning_rate(config(schedule, 100), 100), 0.5);
  }
}

TEST(Schedule, CosineFallsToItsFractionAndStaysThere) {
  const TrainConfig train = config("cosine", 100);
  EXPECT_DOUBLE_EQ(learning_rate(train, 550), 0.5 * 0.55);  // halfway
  EXPECT_DOUBLE_EQ(learning_rate(train, 1000), 0.05);
  EXPECT_DOUBLE_EQ(learning_rate(train, 2000), 0.05);
}

TEST(Schedule, InverseRootIsThatOfTheLongRangeArena) {
  const TrainConfig train = config("inverse_root", 100);
  EXPECT_DOUBLE_EQ(learning_rate(train, 50), 0.5 * 0.5 / 10);
  EXPECT_DOUBLE_EQ(learning_rate(train, 100), 0.05);
  EXPECT_DOUBLE_EQ(learning_rate(train, 400), 0.025);
}

TEST(Schedule, NeedsNoWarmUp) {
  EXPECT_DOUBLE_EQ(learning_rate(config("constant", 0), 1), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config("inverse_root", 0), 1), 0.5);
  EXPECT_NEAR(learning_rate(config("cosine", 0), 1), 0.5, 1e-5);
}

}  // namespace
}  // namespace lagwise
