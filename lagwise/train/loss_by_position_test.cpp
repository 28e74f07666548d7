#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "lagwise/models/model.h"
#include "lagwise/train/evaluation.h"
#include "lagwise/train/testing_positions.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

/// The loss of the last target of tokens [n] that come in one pass.
double last_loss(Model& model, const Batch& batch, int64_t window, int64_t begin,
                 int64_t target) {
  const at::NoGradGuard no_graph;
  Batch seen;
  seen.tokens = batch.tokens.narrow(0, window, 1).narrow(1, begin, target + 1 - begin);
  const at::Tensor row = model.logits(seen, {})[0][target - begin].to(at::kDouble);
  const auto next = batch.targets[window][target].item<int64_t>();
  return -at::log_softmax(row, 0)[next].item<double>();
}

/// Where the restarted window of a target begins, from the definition: windows begin at
/// multiples of h = L/8 and count for their last h targets, the first for all.
int64_t window_begin(int64_t target, int64_t trained) {
  const int64_t slide = std::max<int64_t>(1, trained / 8);
  for (int64_t begin = 0;; begin += slide)
    if (target < begin + trained) return begin;
}

struct Naive {
  double loss = 0, restart = 0;
};

Naive naive(Model& model, const Batch& batch, int64_t begin, int64_t end) {
  Naive sum;
  const int64_t windows = batch.tokens.size(0);
  for (int64_t w = 0; w < windows; ++w)
    for (int64_t p = begin; p < end; ++p) {
      sum.loss += last_loss(model, batch, w, 0, p);
      sum.restart +=
          last_loss(model, batch, w, window_begin(p, model.config().length), p);
    }
  const double count = static_cast<double>(windows * (end - begin));
  return {sum.loss / count, sum.restart / count};
}

void expect_naive(const ModelConfig& config, int64_t length) {
  const auto model = make_model(config);
  model->eval();
  const LetterStream task(2 * length + 1);
  const LossByPosition found = loss_by_position(*model, task, {}, "test", length, 0);
  ASSERT_EQ(found.windows, 2);
  const Batch batch = task.eval_batch("test", 0, 2, length);
  for (const auto* parts : {&found.buckets, &found.spans}) {
    int64_t reached = 0;
    for (const PositionLoss& part : *parts) {
      SCOPED_TRACE(part.begin);
      EXPECT_EQ(part.begin, reached);
      reached = part.end;
      const Naive want = naive(*model, batch, part.begin, part.end);
      EXPECT_NEAR(part.loss, want.loss, 1e-4);
      EXPECT_NEAR(part.restart, want.restart, 1e-4);
      EXPECT_NEAR(part.difference, want.loss - want.restart, 1e-4);
      if (part.end <= config.length) {
        EXPECT_EQ(part.difference, 0);
      }
    }
    EXPECT_EQ(reached, length);
  }
}

TEST(LossByPosition, EqualsOnePassATarget) {
  expect_naive(short_model("rope:layout=half", kNormalised), 29);
  expect_naive(short_model("sinusoidal", "exact"), 24);
  ModelConfig odd = short_model("sine_spe", kNormalised);
  odd.length = 7;
  expect_naive(odd, 22);
}

TEST(LossByPosition, IsOneLineBelowTheTrainingLength) {
  expect_naive(short_model(), 8);
  expect_naive(short_model(), 5);
}

TEST(LossByPosition, SlidesByAnEighthWhateverTheLength) {
  ModelConfig longer = short_model("rope:layout=half", kNormalised);
  longer.length = 16;
  expect_naive(longer, 49);
  const LetterStream task(50, 16);
  EXPECT_EQ(loss_by_position(*make_model(longer), task, {}, "test", 49, 0).slide, 2);
}

/// With windows of 64 the last 8 targets are judged; with a context of c their windows
/// end at 56 + c/8, 56 + 2c/8, ...
TEST(LossByPosition, JudgesTheSameTargetsWithEveryContext) {
  const auto model = make_model(short_model("sinusoidal", kNormalised));
  model->eval();
  const LetterStream task(3 * 64 + 1);
  const LossByPosition found = loss_by_position(*model, task, {}, "test", 64, 0);
  const Batch batch = task.eval_batch("test", 0, 3, 64);
  EXPECT_EQ(found.context_targets, 8);
  ASSERT_EQ(found.contexts.size(), 6U);
  std::map<int64_t, double> want;
  for (const int64_t context : {2, 4, 8, 16, 32, 64}) {
    const int64_t slide = std::max<int64_t>(1, context / 8);
    for (int64_t w = 0; w < 3; ++w)
      for (int64_t p = 56; p < 64; ++p)
        want[context] += last_loss(*model, batch, w,
                                   56 + ((p - 56) / slide + 1) * slide - context, p) /
                         24;
  }
  for (const ContextLoss& point : found.contexts) {
    SCOPED_TRACE(point.context);
    EXPECT_NEAR(point.loss, want.at(point.context), 1e-4);
    EXPECT_NEAR(point.difference, want.at(point.context) - want.at(8), 1e-4);
    EXPECT_EQ(point.difference_error > 0, point.context != 8);
  }
}

TEST(LossByPosition, HasNoCurveOfContextBelowTheTrainingLength) {
  const auto model = make_model(short_model());
  const LetterStream task(100);
  EXPECT_TRUE(loss_by_position(*model, task, {}, "test", 7, 2).contexts.empty());
  const LossByPosition odd = loss_by_position(*model, task, {}, "test", 29, 2);
  ASSERT_EQ(odd.contexts.size(), 4U);  // 2, 4, 8, 16
  EXPECT_EQ(odd.context_targets, 3);
  EXPECT_EQ(odd.contexts[2].difference, 0);
}

TEST(LossByPosition, SetsWhatCanBeKnownBesideTheModel) {
  const auto task = make_task({.task = "markov:symbols=11", .path = "", .length = 8});
  const auto model = make_model(short_model());
  const LossByPosition found = loss_by_position(*model, *task, {}, "test", 32, 3);
  const auto mean = [&](const at::Tensor& losses) {
    return losses.slice(1, 16, 32).mean().item<double>();
  };
  double best = 0, source = 0;
  for (const int64_t window : {0, 170, 341}) {  // three of 512
    const IdealLosses ideal = task->ideal("test", window, window + 1, 32).value();
    best += mean(ideal.best) / 3, source += mean(ideal.source) / 3;
  }
  EXPECT_NEAR(found.spans.back().best, best, 1e-9);
  EXPECT_NEAR(found.spans.back().source, source, 1e-9);
  const LetterStream letters(100);
  EXPECT_TRUE(std::isnan(
      loss_by_position(*model, letters, {}, "test", 32, 1).spans.back().best));
}

TEST(LossByPosition, SplitsIntoEighthsForChartsAndDoublingsForTables) {
  const auto model = make_model(short_model());
  const LetterStream task(200);
  const auto ends = [](const std::vector<PositionLoss>& parts) {
    std::vector<int64_t> ends;
    for (const PositionLoss& part : parts) ends.push_back(part.end);
    return ends;
  };
  const LossByPosition found = loss_by_position(*model, task, {}, "test", 40, 3);
  EXPECT_EQ(found.trained, 8);
  EXPECT_EQ(found.windows, 3);
  EXPECT_EQ(found.buckets.size(), 40U);
  EXPECT_EQ(ends(found.spans), (std::vector<int64_t>{4, 8, 16, 32, 40}));
  const LossByPosition own =
      loss_by_position(*model, task, {}, "test", 40, 3, {}, {8, 24, 40});
  EXPECT_EQ(ends(own.spans), (std::vector<int64_t>{4, 8, 24, 40}));
}

TEST(LossByPosition, PairsWindowsSoThatCommonDifficultyCancels) {
  const auto model = make_model(short_model("alibi", "exact"));
  const LetterStream task(24 * 16 + 1);
  const LossByPosition found = loss_by_position(*model, task, {}, "test", 24, 16);
  const PositionLoss& last = found.spans.back();
  EXPECT_GT(last.difference_error, 0);
  EXPECT_LT(last.difference_error, last.error + last.restart_error);
  EXPECT_NEAR(last.difference, last.loss - last.restart, 1e-9);
}

TEST(LossByPosition, TakesWindowsFromTheWholeSplit) {
  const auto model = make_model(short_model());
  const LetterStream task(24 * 10 + 1);
  const LossByPosition some = loss_by_position(*model, task, {}, "test", 24, 2);
  Batch batch = task.eval_batch("test", 0, 1, 24);
  const Batch later = task.eval_batch("test", 5, 6, 24);
  batch.tokens = at::cat({batch.tokens, later.tokens}, 0);
  batch.targets = at::cat({batch.targets, later.targets}, 0);
  EXPECT_NEAR(some.spans.back().loss, naive(*model, batch, 16, 24).loss, 1e-4);
}

TEST(LossByPosition, SaysWhatItCannotDo) {
  const LetterStream task(100);
  const auto model = make_model(short_model());
  EXPECT_THAT(message_of([&] { loss_by_position(*model, task, {}, "test", 100, 1); }),
              HasSubstr("the split 'test' has no window of 100 tokens"));
  const auto bounded = make_model(short_model("learned:max=16"));
  EXPECT_THAT(message_of([&] { loss_by_position(*bounded, task, {}, "test", 32, 1); }),
              HasSubstr("table of 16 positions"));
}

}  // namespace
}  // namespace lagwise
