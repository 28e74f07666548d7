#include "lagwise/data/sources/listops_examples.h"
#include "lagwise/data/sources/listops_expression.h"
#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

TaskConfig small() {
  return {.task = "listops:train=40,valid=5,test=6", .length = 60, .seed = 3};
}

TEST(ListopsTask, KeepsThePromisesOfTasks) { expect_task_keeps_its_promises(small()); }

TEST(ListopsTask, AsksForTheValueOfWhatIsShown) {
  const auto task = make_task(small());
  const Batch batch = task->train_batch(0, 0, 16);
  for (int64_t i = 0; i < 16; ++i) {
    const auto row = row_of(batch.tokens, batch.lengths, i);
    const std::vector<int32_t> symbols(row.begin(), row.end());
    EXPECT_EQ(data::listops_value(symbols), batch.targets[i].item<int64_t>());
    EXPECT_GT(row.size(), 15u);
    EXPECT_LT(row.size(), 60u);
  }
  EXPECT_EQ(task->size("train"), 40);
  EXPECT_EQ(task->size("valid"), 5);
  EXPECT_EQ(task->size("test"), 6);
}

TEST(ListopsTask, ShapesAClassifierOfTenClasses) {
  ModelConfig config;
  make_task(small())->shape(config);
  EXPECT_EQ(config.model, "classifier");
  EXPECT_EQ(config.vocabulary, 16);
  EXPECT_EQ(config.classes, 10);
  EXPECT_EQ(config.length, 60);
}

TEST(ListopsTask, ReadsTablesAndPreparedSets) {
  const TempFolder folder;
  put(folder / "basic_train.tsv", "Source\tTarget\r\n( ( [MAX 1 ) ] )\t1\r\n");
  put(folder / "basic_val.tsv", "Source\tTarget\r\n5\t5\r\n");
  TaskConfig config{.task = "listops", .path = folder.path(), .length = 60};
  const auto table = make_task(config);
  EXPECT_EQ(row_of(table->eval_batch("train", 0, 1).tokens, {}, 0),
            (std::vector<int64_t>{12, 2, 15}));
  {
    data::ExampleWriter writer(folder / "set", {"", "listops", 16, {}, {}}, {}, 10);
    data::read_listops_examples(
        folder.path(), [&](const std::string& split, const data::Example& example,
                           double) { writer.add(split, example); });
    writer.commit();
  }
  config.path = folder / "set";
  const auto set = make_task(config);
  expect_same_batch(table->eval_batch("train", 0, 1), set->eval_batch("train", 0, 1));
  expect_same_batch(table->eval_batch("valid", 0, 1), set->eval_batch("valid", 0, 1));
}

TEST(ListopsTask, RefusesBadOptionsAndDamagedSets) {
  EXPECT_THAT(refusal([] { make_task({.task = "listops:train=-1"}); }),
              HasSubstr("listops: train: expected 0 to 100000000, got -1"));
  EXPECT_THAT(data_error([] { make_task({.task = "listops:train=0", .length = 60}); }),
              HasSubstr("expected examples to train on"));
  const TempFolder folder;
  {
    data::ExampleWriter writer(folder / "set", {"", "listops", 16, {}, {}}, {}, 10);
    writer.add("train", {1, {2, 3}, {}});
    writer.commit();
  }
  const std::string shard = contents(folder / "set/train.bin");
  put(folder / "set/train.bin", shard.substr(0, shard.size() - 1));
  EXPECT_THAT(
      data_error([&] { make_task({.task = "listops", .path = folder / "set"}); }),
      HasSubstr("train.bin"));
}

}  // namespace
}  // namespace lagwise
