#include <cmath>

#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

TaskConfig markov_config(const std::string& options = "", int64_t length = 32) {
  return {.task = "markov" + options, .path = "", .length = length, .seed = 5};
}

TEST(MarkovTask, KeepsThePromisesOfTasks) {
  expect_task_keeps_its_promises(markov_config());
}

TEST(MarkovTask, AsksForTheNextSymbol) {
  const auto task = make_task(markov_config(":symbols=4"));
  const Batch batch = task->train_batch(0, 0, 16);
  EXPECT_TRUE(at::equal(batch.tokens.slice(1, 1), batch.targets.slice(1, 0, 31)));
  EXPECT_EQ(batch.tokens.min().item<int64_t>(), 0);
  EXPECT_EQ(batch.tokens.max().item<int64_t>(), 3);
  EXPECT_DOUBLE_EQ(task->guess("test").value(), std::log(4));
}

TEST(MarkovTask, WalksOnWhereAShorterSequenceEnds) {
  const auto task = make_task(markov_config());
  const Batch brief = task->eval_batch("test", 3, 5),
              lasting = task->eval_batch("test", 3, 5, 256);
  EXPECT_TRUE(at::equal(brief.tokens, lasting.tokens.slice(1, 0, 32)));
  const Batch window = task->train_batch(7, 1, 3),
              wider = task->train_windows(7, 1, 3, 128);
  EXPECT_TRUE(at::equal(window.tokens, wider.tokens.slice(1, 0, 32)));
  EXPECT_EQ(wider.targets.size(1), 128);
  const std::vector<int64_t> stream = task->stream("test", 10, 500);
  ASSERT_EQ(stream.size(), 500u);
  EXPECT_EQ(stream[7], task->eval_batch("test", 0, 1).tokens[0][17].item<int64_t>());
}

TEST(MarkovTask, GivesEverySequenceAndSplitAChainOfItsOwn) {
  const auto task = make_task(markov_config());
  const Batch test = task->eval_batch("test", 0, 2);
  EXPECT_FALSE(at::equal(test.tokens[0], test.tokens[1]));
  EXPECT_FALSE(same(test.tokens, task->eval_batch("valid", 0, 2).tokens));
  EXPECT_FALSE(same(test.tokens, task->train_batch(0, 0, 2).tokens));
}

/// The definition, with the counts of all tokens before taken anew for each target.
TEST(MarkovTask, CountsWhatTheBestPredictorHasSeen) {
  const auto task = make_task(markov_config(":symbols=3", 40));
  const Batch batch = task->eval_batch("test", 2, 4);
  const IdealLosses ideal = task->ideal("test", 2, 4).value();
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t i = 0; i < 40; ++i) {
      const auto symbol = [&](const at::Tensor& x, int64_t at) {
        return x[b][at].item<int64_t>();
      };
      double from = 0, both = 0;
      for (int64_t j = 0; j < i; ++j) {
        if (symbol(batch.tokens, j) != symbol(batch.tokens, i)) continue;
        ++from;
        both += symbol(batch.targets, j) == symbol(batch.targets, i) ? 1 : 0;
      }
      EXPECT_NEAR(ideal.best[b][i].item<double>(), -std::log((both + 1) / (from + 3)),
                  1e-12);
    }
}

/// Mean over sequences and the positions [begin, end) of what the best predictor loses
/// beyond one who knows the chain.
double excess(const IdealLosses& ideal, int64_t begin, int64_t end) {
  return (ideal.best - ideal.source).slice(1, begin, end).mean().item<double>();
}

TEST(MarkovTask, KnowsWhatALongerPastIsWorth) {
  const auto task = make_task(markov_config(":symbols=16"));
  const IdealLosses ideal = task->ideal("test", 0, 400, 1024).value();
  EXPECT_NEAR(excess(ideal, 128, 256), 0.232, 0.008);
  EXPECT_NEAR(excess(ideal, 512, 1024), 0.109, 0.004);
  // The entropy of a row of Dirichlet(1) is 1/2 + 1/3 + ... + 1/V on average, where
  // every row is visited as often; chains dwell where they like, so about that.
  EXPECT_NEAR(ideal.source.mean().item<double>(), 2.3807, 0.03);
}

/// The share of steps that go where most steps from the same symbol go.
double certainty(const Batch& batch, int64_t symbols) {
  double usual = 0, all = 0;
  for (int64_t b = 0; b < batch.tokens.size(0); ++b)
    for (int64_t x = 0; x < symbols; ++x) {
      const at::Tensor after = batch.targets[b].masked_select(batch.tokens[b] == x);
      if (after.numel() == 0) continue;
      usual += after.bincount({}, symbols).max().item<double>();
      all += static_cast<double>(after.numel());
    }
  return usual / all;
}

TEST(MarkovTask, SharpensWhatItTrainsOnAndNothingElse) {
  const auto plain = make_task(markov_config(":symbols=4", 400));
  const auto sharp = make_task(markov_config(":symbols=4,sharpen=8", 400));
  EXPECT_TRUE(at::equal(sharp->eval_batch("valid", 0, 8).tokens,
                        plain->eval_batch("valid", 0, 8).tokens));
  EXPECT_TRUE(at::equal(sharp->ideal("test", 0, 8).value().source,
                        plain->ideal("test", 0, 8).value().source));
  EXPECT_LT(certainty(plain->train_batch(0, 0, 32), 4), 0.6);
  EXPECT_GT(certainty(sharp->train_batch(0, 0, 32), 4), 0.75);
  const Batch window = sharp->train_batch(7, 1, 3);
  EXPECT_TRUE(at::equal(sharp->train_windows(7, 1, 3, 900).tokens.slice(1, 0, 400),
                        window.tokens));
}

TEST(MarkovTask, SaysWhatItCannotDo) {
  for (const char* value : {"0.5", "101"})
    EXPECT_THAT(
        refusal([&] { make_task(markov_config(std::string(":sharpen=") + value)); }),
        HasSubstr("markov: sharpen: expected a number from 1 to 100"));
  EXPECT_THAT(refusal([&] { make_task(markov_config(":symbols=1")); }),
              HasSubstr("markov: symbols: expected 2 to 1024, got 1"));
  EXPECT_THAT(refusal([&] { make_task(markov_config(":sybols=4")); }),
              HasSubstr("unknown option 'sybols'"));
  TaskConfig config = markov_config();
  config.path = "chains.txt";
  EXPECT_THAT(refusal([&] { make_task(config); }),
              HasSubstr("data.path: expected none, since markov makes its data"));
  EXPECT_THROW(make_task(markov_config())->stream("test", -1, 2),
               std::invalid_argument);
  EXPECT_THROW(make_task(markov_config())->ideal("test", 0, 513),
               std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
