#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/models/model.h"
#include "lagwise/train/evaluation.h"
#include "lagwise/train/testing_positions.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

void expect_full_pass(const ModelConfig& config) {
  const auto model = make_model(config);
  model->eval();
  const LetterStream task(101);
  const LossAlongStream found = loss_along_stream(*model, task, {}, "test", 100, 17);
  const at::NoGradGuard no_graph;
  const at::Tensor want =
      model->loss(task.eval_batch("test", 0, 1, 100), {}).by_target[0];
  // One window of the whole length has the same restart line.
  const LossByPosition position =
      loss_by_position(*model, task, {}, "test", 100, 1, {}, {8, 17, 34, 51, 68, 85});
  ASSERT_EQ(found.points.size(), 6U);
  EXPECT_EQ(found.stopped, "");
  for (size_t i = 0; i < found.points.size(); ++i) {
    const StreamPoint& point = found.points[i];
    EXPECT_EQ(point.begin, static_cast<int64_t>(i) * 17);
    EXPECT_NEAR(
        point.loss,
        want.narrow(0, point.begin, point.end - point.begin).mean().item<double>(),
        1e-4);
    EXPECT_GT(point.tokens_per_second, 0);
    EXPECT_GT(point.resident_bytes, 1 << 20);
    if (i == 0) continue;  // three spans of the other
    EXPECT_NEAR(point.restart, position.spans[i + 2].restart, 1e-4);
  }
  EXPECT_EQ(found.points.back().end, 100);
}

TEST(LossAlongStream, EqualsTheFullPass) {
  expect_full_pass(short_model("lrpe", kNormalised));
  expect_full_pass(short_model("conv_spe", kNormalised));
  expect_full_pass(short_model("t5", "exact"));
}

TEST(LossAlongStream, KeepsAStateOfOneSizeWithLinearAttentionAlone) {
  const LetterStream task(101);
  const auto linear = make_model(short_model());
  const auto points = loss_along_stream(*linear, task, {}, "test", 100, 25).points;
  EXPECT_EQ(points.front().state_bytes, points.back().state_bytes);
  const auto exact = make_model(short_model("rope:layout=half", "exact"));
  const auto growing = loss_along_stream(*exact, task, {}, "test", 100, 25).points;
  // Keys and values of 25 and of 100 rows, beside tables of angles for one chunk.
  EXPECT_GT(growing.back().state_bytes, 3 * growing.front().state_bytes);
}

TEST(LossAlongStream, SaysWhyItStopped) {
  const LetterStream task(101);
  const auto model = make_model(short_model());
  EXPECT_THAT(loss_along_stream(*model, task, {}, "test", 200, 25).stopped,
              HasSubstr("the split 'test' has only 101 tokens"));
  const auto bounded = make_model(short_model("huang:max=64", "exact"));
  const LossAlongStream found = loss_along_stream(*bounded, task, {}, "test", 100, 25);
  EXPECT_EQ(found.points.size(), 2U);
  EXPECT_THAT(found.stopped, HasSubstr("lags below max = 64"));
}

}  // namespace
}  // namespace lagwise
