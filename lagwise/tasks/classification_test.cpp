#include "lagwise/tasks/classification.h"

#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

using Tokens = std::vector<int64_t>;

ClassificationFacts facts() {
  return {.name = "toy", .vocabulary = 8, .classes = 3, .length = 4};
}

data::ExampleSet examples() {
  data::ExampleSet set(data::ExampleLayout{});
  for (int i = 0; i < 6; ++i)
    set.add("train", {i % 3, std::vector<int32_t>(static_cast<size_t>(i), i), {}});
  set.add("valid", {1, {7, 6, 5, 4, 3}, {}});
  return set;
}

TEST(Classification, CutsWhatIsTooLong) {
  const Classification task(facts(), examples());
  const Batch batch = task.eval_batch("train", 3, 6);
  EXPECT_EQ(batch.tokens.size(1), 4);
  EXPECT_EQ(row_of(batch.tokens, batch.lengths, 0), (Tokens{3, 3, 3}));
  EXPECT_EQ(row_of(batch.tokens, batch.lengths, 2), (Tokens{5, 5, 5, 5}));
  EXPECT_TRUE(at::equal(batch.targets, at::tensor({0, 1, 2}, at::kLong)));
  EXPECT_EQ(task.eval_batch("valid", 0, 1, 5).tokens.size(1), 5);
}

TEST(Classification, CountsWhatWasGuessedRight) {
  const Classification task(facts(), examples());
  EXPECT_EQ(task.value(loss_of(1, 8, 6)), 0.75);
  EXPECT_TRUE(task.higher_is_better());
}

TEST(Classification, GuessesTheClassMostFrequentInTrain) {
  data::ExampleSet set = examples();
  set.add("train", {2, {1}, {}});
  for (const int label : {2, 0, 2}) set.add("valid", {label, {1}, {}});
  const Classification task(facts(), std::move(set));
  EXPECT_EQ(task.guess("train"), 3.0 / 7);
  EXPECT_EQ(task.guess("valid"), 2.0 / 4);
  EXPECT_THROW(task.guess("nowhere"), std::invalid_argument);
}

TEST(Classification, DrawsEveryExampleInTime) {
  const Classification task(facts(), examples());
  std::map<int64_t, int> seen;  // by length, which tells them apart up to 4
  for (int64_t step = 0; step < 100; ++step) {
    const Batch batch = task.train_batch(step, 0, 6);
    for (int64_t i = 0; i < 6; ++i)
      ++seen[static_cast<int64_t>(row_of(batch.tokens, batch.lengths, i).size())];
  }
  ASSERT_EQ(seen.size(), 5u);
  for (int64_t length = 0; length < 4; ++length) {
    EXPECT_GT(seen[length], 60) << length;  // 100 expected, deviation 9
    EXPECT_LT(seen[length], 140) << length;
  }
}

TEST(Classification, RefusesLabelsThatAreNoClassAndEmptyData) {
  data::ExampleSet wrong = examples();
  wrong.add("valid", {3, {1}, {}});
  EXPECT_THAT(data_error([&] { Classification(facts(), std::move(wrong)); }),
              HasSubstr("toy valid: expected labels from 0 to 2, got 3"));
  data::ExampleSet empty(data::ExampleLayout{});
  EXPECT_THAT(data_error([&] { Classification(facts(), std::move(empty)); }),
              HasSubstr("toy: expected examples to train on, got none"));
}

TEST(Classification, RefusesImagesOfAnotherSize) {
  ClassificationFacts image = facts();
  image.grid = {2, 2};
  EXPECT_THAT(data_error([&] { Classification(image, examples()); }),
              HasSubstr("expected 4 numbers an image, got"));
}

}  // namespace
}  // namespace lagwise
