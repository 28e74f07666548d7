#include "lagwise/data/music/chorale_tokens.h"
#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace lagwise::testing;

using Tokens = std::vector<int64_t>;

/// A chorale of `steps` sixteenths, its soprano from `first` upwards.
std::string chorale(int first, int steps) {
  std::string text;
  for (int i = 0; i < steps; ++i) {
    const auto voice = [&](int below) { return std::to_string(first + i - below); };
    text += (i ? ", [" : "[[") + voice(0) + ", " + voice(5) + ", " + voice(8) + ", -1]";
  }
  return text + "]";
}

struct HarmoniseTask : ::testing::Test {
  const TempFolder folder;
  TaskConfig config{.task = "harmonise", .path = folder / "c.json", .length = 12};

  HarmoniseTask() {
    put(config.path, "{\"train\": [" + chorale(60, 30) + ", " + chorale(50, 3) +
                         "], \"valid\": [" + chorale(70, 6) + "]}");
  }
};

TEST_F(HarmoniseTask, KeepsThePromisesOfTasks) {
  expect_task_keeps_its_promises(config);
  config.task = "harmonise:transpose=5";
  expect_task_keeps_its_promises(config);
}

TEST_F(HarmoniseTask, HearsTheSopranoAndWritesTheOthersAtTheSameRows) {
  const Batch batch = make_task(config)->eval_batch("valid", 0, 2);
  EXPECT_THAT(row_of(batch.source, batch.source_lengths, 0),
              ElementsAre(90, 2, 4, 91, 2, 5, 92, 2, 6, 93, 2, 7));
  EXPECT_THAT(row_of(batch.targets, batch.lengths, 0),
              ElementsAre(85, 82, 1, 86, 83, 1, 87, 84, 1, 88, 85, 1));
  EXPECT_THAT(row_of(batch.tokens, batch.lengths, 0),
              ElementsAre(0, 85, 82, 1, 86, 83, 1, 87, 84, 1, 88, 85));
  EXPECT_THAT(row_of(batch.source, batch.source_lengths, 1),
              ElementsAre(94, 2, 8, 95, 2, 9));
  EXPECT_EQ(batch.targets[1][6].item<int64_t>(), -1);  // does not count
}

TEST_F(HarmoniseTask, CutsChoralesOneAfterAnother) {
  const auto task = make_task(config);
  EXPECT_EQ(task->size("valid"), 2);
  EXPECT_EQ(task->size("valid", 6), 3);
  EXPECT_EQ(task->size("train"), 8 + 1);
}

TEST_F(HarmoniseTask, TransposesAllVoicesAlike) {
  config.task = "harmonise:transpose=5";
  const auto moved = make_task(config);
  config.task = "harmonise";
  const auto plain = make_task(config);
  std::set<int64_t> by;
  for (int64_t step = 0; step < 30; ++step) {
    const Batch a = moved->train_batch(step, 0, 1), b = plain->train_batch(step, 0, 1);
    const at::Tensor difference = a.targets - b.targets;
    const auto semitones = difference[0][0].item<int64_t>();
    by.insert(semitones);
    EXPECT_EQ(difference[0][1].item<int64_t>(), semitones);
    EXPECT_EQ(difference[0][2].item<int64_t>(), 0);  // rests stay
    EXPECT_EQ((a.source - b.source)[0][0].item<int64_t>(), semitones);
    EXPECT_EQ((a.source - b.source)[0][1].item<int64_t>(), 0);
  }
  EXPECT_GE(*by.begin(), -5);
  EXPECT_LE(*by.rbegin(), 5);
  EXPECT_GT(by.size(), 6u);
}

TEST_F(HarmoniseTask, GuessesAnyNoteOrARest) {
  EXPECT_DOUBLE_EQ(make_task(config)->guess("valid").value(), 3 * std::log(129));
}

TEST_F(HarmoniseTask, MeasuresASixteenth) {
  const auto task = make_task(config);
  EXPECT_EQ(task->value(loss_of(10, 30, 15)), 1.0);
  EXPECT_EQ(task->more("valid", loss_of(10, 30, 15)).at("note accuracy"), 0.5);
  EXPECT_FALSE(task->higher_is_better());
}

TEST_F(HarmoniseTask, TakesPromptsAndWritesChords) {
  const auto task = make_task(config);
  EXPECT_THAT(task->encode("C4:2"), ElementsAre(80, 2, 4, 80, 3, 5));
  EXPECT_EQ(task->encode("valid:0").size(), 18u);
  EXPECT_THAT(refusal([&] { task->encode("valid:1"); }),
              HasSubstr("expected a chorale from valid:0 to valid:0, got 'valid:1'"));
  EXPECT_EQ(task->decode({80, 76, 73}), "C4 G#3 F3 :1\n");
  const auto grammar = task->grammar();
  EXPECT_TRUE(grammar->legal(data::kChoraleRest));
  EXPECT_TRUE(grammar->legal(data::kChoralePitch));
  EXPECT_FALSE(grammar->legal(data::kChoraleHeld));
  EXPECT_FALSE(grammar->legal(data::kChoraleWords));
  EXPECT_EQ(task->words().size(), 148u);
}

TEST_F(HarmoniseTask, CountsBarsOfTheSoprano) {
  const auto task = make_task(config);
  const Tokens two_and_a_half = task->encode("C5:16 D5:16 E5:8");
  EXPECT_EQ(task->first_bars(two_and_a_half, 1), 48);
  EXPECT_EQ(task->first_bars(two_and_a_half, 2), 96);
  EXPECT_EQ(task->first_bars(two_and_a_half, 3), 120);
  EXPECT_EQ(task->first_bars(two_and_a_half, int64_t{1} << 62), 120);
  EXPECT_EQ(task->first_bars({}, 1), 0);
}

TEST_F(HarmoniseTask, ReadsAPreparedSet) {
  constexpr data::ExampleLayout kPairs{.labelled = false, .paired = true};
  {
    data::ExampleWriter writer(
        folder / "set", {"", "harmonise", 148, data::chorale_words(), {}}, kPairs);
    data::read_chorale_examples(
        config.path, [&](const std::string& split, const data::Example& example,
                         double) { writer.add(split, example); });
    writer.commit();
  }
  const auto raw = make_task(config);
  config.path = folder / "set";
  expect_same_batch(raw->train_batch(1, 2, 9), make_task(config)->train_batch(1, 2, 9));
}

TEST_F(HarmoniseTask, RefusesBadOptionsAndFiles) {
  config.length = 2;
  EXPECT_THAT(refusal([&] { make_task(config); }), HasSubstr("expected at least 3"));
  config.length = 12, config.task = "harmonise:transpose=13";
  EXPECT_THAT(refusal([&] { make_task(config); }),
              HasSubstr("transpose: expected 0 to 12 semitones, got 13"));
  put(config.path, "{\"valid\": [" + chorale(60, 3) + "]}");
  config.task = "harmonise";
  EXPECT_THAT(data_error([&] { make_task(config); }),
              HasSubstr("c.json: expected chorales to train on, got none"));
}

}  // namespace
}  // namespace lagwise
