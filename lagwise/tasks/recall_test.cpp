#include <algorithm>
#include <map>
#include <set>

#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

TaskConfig recall_config(const std::string& options = "", int64_t length = 64) {
  return {.task = "recall" + options, .path = "", .length = length, .seed = 3};
}

TEST(RecallTask, KeepsThePromisesOfTasks) {
  expect_task_keeps_its_promises(recall_config(":pairs=4"));
}

/// Reads the pairs of a row and checks that its questions ask for them; returns the
/// slots of the questions.
std::vector<int64_t> expect_questions_fit(const Batch& batch, int64_t row,
                                          int64_t pairs, int64_t symbols) {
  const std::vector<int64_t> tokens = row_of(batch.tokens, {}, row),
                             targets = row_of(batch.targets, {}, row);
  std::map<int64_t, int64_t> value_of;
  for (size_t i = 0; i < static_cast<size_t>(2 * pairs); i += 2) {
    EXPECT_LT(tokens[i], symbols);
    EXPECT_GE(tokens[i + 1], symbols);
    EXPECT_LT(tokens[i + 1], 2 * symbols);
    value_of[tokens[i]] = tokens[i + 1];
  }
  EXPECT_EQ(value_of.size(), static_cast<size_t>(pairs));
  std::vector<int64_t> slots;
  std::set<int64_t> asked;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (targets[i] < 0) {
      if (i >= static_cast<size_t>(2 * pairs)) {
        EXPECT_GE(tokens[i], 2 * symbols);  // noise
      }
      continue;
    }
    EXPECT_EQ(value_of.at(tokens[i]), targets[i]);
    asked.insert(tokens[i]);
    slots.push_back((static_cast<int64_t>(i) - 2 * pairs) / 2);
  }
  EXPECT_EQ(asked.size(), value_of.size()) << "a key nobody asked for";
  return slots;
}

TEST(RecallTask, AsksForEveryKeyOnceAndNothingElse) {
  const auto task = make_task(recall_config(":pairs=5,symbols=9", 43));
  for (const Batch& batch :
       {task->train_batch(0, 0, 20), task->eval_batch("test", 0, 9),
        task->eval_batch("test", 0, 9, 21)})
    for (int64_t row = 0; row < batch.tokens.size(0); ++row)
      EXPECT_EQ(expect_questions_fit(batch, row, 5, 9).size(), 5u);
}

/// How many pairs a row of tokens begins with.
int64_t pairs_of(const at::Tensor& tokens, int64_t symbols) {
  int64_t pairs = 0;
  while (tokens[2 * pairs + 1].item<int64_t>() / symbols == 1) ++pairs;
  return pairs;
}

TEST(RecallTask, TrainsOnOtherSequencesThanItIsJudgedBy) {
  const auto task =
      make_task(recall_config(":pairs=5,fewest=2,questions=9,symbols=9", 43));
  const Batch batch = task->train_batch(0, 0, 90);
  std::set<int64_t> pairs, questions;
  for (int64_t row = 0; row < 90; ++row) {
    const int64_t count = pairs_of(batch.tokens[row], 9);
    const auto slots = expect_questions_fit(batch, row, count, 9);
    EXPECT_GE(static_cast<int64_t>(slots.size()), count);
    pairs.insert(count), questions.insert(static_cast<int64_t>(slots.size()));
  }
  EXPECT_EQ(pairs, (std::set<int64_t>{2, 3, 4, 5}));
  EXPECT_EQ(*questions.begin(), 2);
  EXPECT_EQ(*questions.rbegin(), 9);
  const auto all = make_task(recall_config(":pairs=5,symbols=9", 43));
  EXPECT_TRUE(at::equal(task->eval_batch("test", 0, 9).tokens,
                        all->eval_batch("test", 0, 9).tokens));
}

/// The middle of all slots in which a question stands.
int64_t median_slot(const Task& task, int64_t length) {
  std::vector<int64_t> slots;
  const Batch batch = task.eval_batch("test", 0, 400, length);
  for (int64_t row = 0; row < 400; ++row)
    for (const int64_t slot : expect_questions_fit(batch, row, 1, 4))
      slots.push_back(slot);
  std::nth_element(slots.begin(), slots.begin() + 200, slots.end());
  return slots[200];
}

/// With one pair the law can be summed: for power = 1 the median of S slots is S / 2,
/// for power near 0 it is where half of the harmonic sum is reached.
TEST(RecallTask, AsksLaterInLongerSequences) {
  const auto even = make_task(recall_config(":pairs=1,symbols=4,power=1"));
  EXPECT_NEAR(static_cast<double>(median_slot(*even, 202)), 50, 8);
  EXPECT_NEAR(static_cast<double>(median_slot(*even, 802)), 200, 30);
  const auto law = make_task(recall_config(":pairs=1,symbols=4"));
  EXPECT_NEAR(static_cast<double>(median_slot(*law, 202)), 7, 3);     // of 100
  EXPECT_NEAR(static_cast<double>(median_slot(*law, 3202)), 30, 12);  // of 1600
}

TEST(RecallTask, MeasuresAccuracyAtEachLength) {
  const auto task = make_task(recall_config(":pairs=4"));
  EXPECT_TRUE(task->judged_by_length());
  EXPECT_TRUE(task->higher_is_better());
  EXPECT_EQ(task->value(loss_of(1, 8, 6)), 0.75);
  EXPECT_EQ(task->guess("test"), 1.0 / 64);
  EXPECT_EQ(task->eval_batch("test", 0, 1, 512).tokens.size(1), 512);
}

TEST(RecallTask, StreamsItsExamples) {
  const auto task = make_task(recall_config(":pairs=4,examples=3"));
  const Batch all = task->eval_batch("test", 0, 3);
  const std::vector<int64_t> stream = task->stream("test", 60, 10);
  ASSERT_EQ(stream.size(), 10u);
  EXPECT_EQ(stream[3], all.tokens[0][63].item<int64_t>());
  EXPECT_EQ(stream[4], all.tokens[1][0].item<int64_t>());
  EXPECT_EQ(task->stream("test", 100, 1000).size(), 92u);
}

TEST(RecallTask, SaysWhatItCannotDo) {
  const auto said = [](const std::string& options, int64_t length = 64) {
    return refusal([&] { make_task(recall_config(options, length)); });
  };
  EXPECT_THAT(said("", 63), HasSubstr("at least 4 pairs = 64 tokens, got 63"));
  EXPECT_THAT(said(":pairs=9,symbols=8"),
              HasSubstr("pairs: expected 1 to symbols = 8"));
  EXPECT_THAT(said(":pairs=4,fewest=5"),
              HasSubstr("fewest: expected 1 to pairs = 4, got 5"));
  EXPECT_THAT(said(":pairs=4,questions=3"),
              HasSubstr("questions: expected 0 (one for each pair), or pairs = 4 and "
                        "more, got 3"));
  EXPECT_THAT(said(":symbols=0"), HasSubstr("symbols: expected 1 to 65536, got 0"));
  EXPECT_THAT(said(":power=0"), HasSubstr("power: expected above 0"));
  const auto task = make_task(recall_config());
  EXPECT_THAT(refusal([&] { task->train_windows(0, 0, 1, 128); }),
              HasSubstr("this task is no stream of tokens"));
  EXPECT_FALSE(task->ideal("test", 0, 1).has_value());
}

}  // namespace
}  // namespace lagwise
