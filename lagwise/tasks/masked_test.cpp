#include <cmath>

#include "lagwise/data/sets/shards.h"
#include "lagwise/data/text/word_level.h"
#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

constexpr int64_t kMask = 256;  // of bytes

struct MaskedTask : ::testing::Test {
  const TempFolder folder;
  TaskConfig config{.task = "masked", .path = folder / "a.txt", .length = 32};
  std::string text;

  MaskedTask() {
    for (int i = 0; i < 4000; ++i) text += static_cast<char>('!' + i % 90);
    put(config.path, text);
  }
};

/// What became of the tokens of some batches.
struct Counts {
  double all = 0, chosen = 0, masked = 0, stayed = 0, other = 0;
  std::vector<double> by_position;

  void add(const Batch& batch) {
    const auto tokens = batch.tokens.accessor<int64_t, 2>();
    const auto targets = batch.targets.accessor<int64_t, 2>();
    by_position.resize(static_cast<size_t>(batch.tokens.size(1)));
    for (int64_t i = 0; i < batch.tokens.size(0); ++i)
      for (int64_t j = 0; j < batch.tokens.size(1); ++j) {
        ++all;
        if (targets[i][j] < 0) {
          EXPECT_LT(tokens[i][j], kMask);
          continue;
        }
        ++chosen, ++by_position[static_cast<size_t>(j)];
        if (tokens[i][j] == kMask)
          ++masked;
        else if (tokens[i][j] == targets[i][j])
          ++stayed;
        else
          ++other;
      }
  }
};

TEST_F(MaskedTask, KeepsThePromisesOfTasks) { expect_task_keeps_its_promises(config); }

TEST_F(MaskedTask, FollowsTheRuleOfBert) {
  const auto task = make_task(config);
  Counts counts;
  for (int64_t step = 0; step < 100; ++step) counts.add(task->train_batch(step, 0, 64));
  const double n = counts.all;  // 204,800: three deviations are below 0.0024
  EXPECT_NEAR(counts.chosen / n, 0.15, 0.0024);
  EXPECT_NEAR(counts.masked / counts.chosen, 0.8, 0.007);
  // A random token is the token itself once in 256 times.
  EXPECT_NEAR(counts.other / counts.chosen, 0.1 * 255 / 256, 0.006);
  EXPECT_NEAR(counts.stayed / counts.chosen, 0.1 + 0.1 / 256, 0.006);
  for (const double chosen : counts.by_position)
    EXPECT_NEAR(chosen / 6400, 0.15, 0.018);  // of each position
}

TEST_F(MaskedTask, AsksForWhatStoodThere) {
  const Batch batch = make_task(config)->train_batch(7, 1, 16);
  const at::Tensor whole =
      at::where(batch.targets.ge(0), batch.targets, batch.tokens).contiguous();
  const std::string train = text.substr(0, 3600);
  for (int64_t i = 0; i < 16; ++i) {
    const std::vector<int64_t> row = row_of(whole, {}, i);
    EXPECT_THAT(train, HasSubstr(std::string(row.begin(), row.end())));
  }
}

TEST_F(MaskedTask, HidesByRowAndPositionAlone) {
  const auto task = make_task(config);
  const Batch many = task->train_batch(5, 0, 8);
  const Batch part = task->train_batch(5, 0, Rows(2, 5));
  EXPECT_TRUE(at::equal(part.targets, many.targets.slice(0, 2, 5)));
  EXPECT_FALSE(at::equal(task->train_batch(6, 0, 8).targets.ge(0), many.targets.ge(0)));
  EXPECT_FALSE(at::equal(task->train_batch(5, 1, 8).targets.ge(0), many.targets.ge(0)));
}

TEST_F(MaskedTask, JudgesByTheSameHiddenTokensEveryTime) {
  const auto task = make_task(config);
  ASSERT_EQ(task->size("valid"), 6);
  const Batch all = task->eval_batch("valid", 0, 6);
  expect_same_batch(task->eval_batch("valid", 0, 6), all);
  EXPECT_TRUE(
      at::equal(task->eval_batch("valid", 4, 5).tokens, all.tokens.slice(0, 4, 5)));
  EXPECT_FALSE(at::equal(all.targets[0].ge(0), all.targets[1].ge(0)));
}

TEST_F(MaskedTask, ShapesAModelWithOneTokenMore) {
  ModelConfig shape;
  make_task(config)->shape(shape);
  EXPECT_EQ(shape.model, "encoder_lm");
  EXPECT_EQ(shape.vocabulary, 257);
  EXPECT_EQ(shape.length, 32);
}

TEST_F(MaskedTask, ReadsSetsWithATokenizer) {
  data::WordCount count;
  count.read(" one two three \n");
  const data::WordLevel words = count.words(0);
  std::string all;
  for (int i = 0; i < 40; ++i) all += " one two three \n";
  put(folder / "words/tokenizer.json", words.json());
  data::ShardSetWriter writer(folder / "words",
                              {"",
                               "tokenizer",
                               words.vocabulary(),
                               {},
                               {{"tokenizer", data::hash_text(words.hash())}}});
  writer.add("train", words.encode(all));
  writer.commit();
  const auto task =
      make_task({.task = "masked", .path = folder / "words", .length = 8});
  ModelConfig shape;
  task->shape(shape);
  EXPECT_EQ(shape.vocabulary, words.vocabulary() + 1);
  EXPECT_EQ(task->tokenizer(), words.json());
  const auto text = make_token_text("masked", task->words(), task->tokenizer());
  EXPECT_EQ(text->decode(text->encode("one three")), " one three");
}

TEST_F(MaskedTask, MeasuresNatsAndAccuracyOfHiddenTokens) {
  const auto task = make_task(config);
  EXPECT_EQ(task->metric(), "masked loss");
  EXPECT_DOUBLE_EQ(task->guess("valid").value(), std::log(256));
  EXPECT_DOUBLE_EQ(task->value(loss_of(12, 6, 3)), 2);
  EXPECT_DOUBLE_EQ(task->more("valid", loss_of(12, 6, 3)).at("accuracy"), 0.5);
}

TEST_F(MaskedTask, TakesOtherRates) {
  config.task = "masked:rate=0.5,mask=1,random=0";
  Counts counts;
  counts.add(make_task(config)->train_batch(0, 0, 200));
  EXPECT_NEAR(counts.chosen / counts.all, 0.5, 0.02);
  EXPECT_EQ(counts.masked, counts.chosen);
}

TEST_F(MaskedTask, RefusesRatesThatAreNone) {
  const auto refused = [&](const char* task) {
    config.task = task;
    return refusal([&] { make_task(config); });
  };
  EXPECT_THAT(refused("masked:rate=0"),
              HasSubstr("masked: rate: expected a probability, above 0 to 1"));
  EXPECT_THAT(refused("masked:mask=1.5"), HasSubstr("from 0 to 1, got 1.5"));
  EXPECT_THAT(refused("masked:mask=0.8,random=0.3"),
              HasSubstr("expected mask + random to be at most 1"));
  EXPECT_THAT(refused("masked:rat=1"), HasSubstr("did you mean 'rate'?"));
}

}  // namespace
}  // namespace lagwise
