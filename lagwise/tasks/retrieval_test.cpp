#include "lagwise/data/sources/retrieval_examples.h"
#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

struct RetrievalTask : ::testing::Test {
  const TempFolder folder;
  TaskConfig config{
      .task = "retrieval:train=40,valid=5,test=6", .path = folder / "t", .length = 12};

  RetrievalTask() {
    for (int i = 0; i < 60; ++i) {
      std::string text;
      for (int j = 0; j < 40; ++j) text += static_cast<char>('!' + (i + j * j) % 90);
      put(folder / ("t/" + std::to_string(i) + ".txt"), text);
    }
  }
};

TEST_F(RetrievalTask, KeepsThePromisesOfTasks) {
  expect_task_keeps_its_promises(config);
}

TEST_F(RetrievalTask, ShowsTwoTexts) {
  const auto task = make_task(config);
  EXPECT_EQ(task->size("train"), 40);
  EXPECT_EQ(task->size("valid"), 5);
  EXPECT_EQ(task->size("test"), 6);
  const Batch batch = task->eval_batch("train", 0, 8);
  EXPECT_EQ(batch.tokens.sizes(), at::IntArrayRef({8, 12}));
  EXPECT_EQ(batch.source.sizes(), at::IntArrayRef({8, 12}));
  EXPECT_EQ(batch.targets.sizes(), at::IntArrayRef({8}));
  ModelConfig shape;
  task->shape(shape);
  EXPECT_EQ(shape.model, "dual_encoder");
  EXPECT_EQ(shape.classes, 2);
}

TEST_F(RetrievalTask, ReadsTablesAndPreparedSets) {
  put(folder / "p.tsv", "1\ta\tb\tlonger text than twelve\tshort\n0\ta\tb\tx\ty\n");
  config.task = "retrieval", config.path = folder / "p.tsv";
  const auto table = make_task(config);
  const Batch batch = table->eval_batch("train", 0, 2);
  EXPECT_EQ(row_of(batch.tokens, batch.lengths, 0).size(), 12u);
  EXPECT_EQ(row_of(batch.source, batch.source_lengths, 0).size(), 5u);
  EXPECT_EQ(row_of(batch.source, batch.source_lengths, 1), std::vector<int64_t>{'y'});
  {
    data::ExampleWriter writer(folder / "set", {"", "retrieval", 256, {}, {}},
                               {true, true}, 2);
    data::read_retrieval_examples(
        config.path, [&](const std::string& split, const data::Example& example,
                         double) { writer.add(split, example); });
    writer.commit();
  }
  config.path = folder / "set";
  expect_same_batch(make_task(config)->eval_batch("train", 0, 2), batch);
}

TEST_F(RetrievalTask, RefusesACorpusWithoutArticles) {
  config.length = 30;
  EXPECT_THAT(data_error([&] { make_task(config); }),
              HasSubstr("expected two articles of 60 bytes or more"));
}

}  // namespace
}  // namespace lagwise
