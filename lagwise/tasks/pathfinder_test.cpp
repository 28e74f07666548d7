#include "lagwise/data/formats/grey_png.h"
#include "lagwise/data/sources/pathfinder_examples.h"
#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

const char* const kSmallPathfinder = "pathfinder:train=12,valid=2,test=3,contour=6";

TEST(PathfinderTask, KeepsThePromisesOfTasks) {
  expect_task_keeps_its_promises({.task = kSmallPathfinder});
}

TEST(PathfinderTask, MakesImagesOfTheArenasSize) {
  const auto task = make_task({.task = kSmallPathfinder});
  EXPECT_EQ(task->size("train"), 12);
  EXPECT_EQ(task->size("test"), 3);
  ModelConfig shape;
  task->shape(shape);
  EXPECT_EQ(shape.model, "classifier");
  EXPECT_EQ(shape.grid, (std::vector<int64_t>{32, 32}));
  EXPECT_EQ(shape.length, 1024);
  EXPECT_EQ(shape.classes, 2);
  EXPECT_EQ(task->eval_batch("train", 0, 3).tokens.sizes(), at::IntArrayRef({3, 1024}));
}

TEST(PathfinderTask, CanReadSquares) {
  const auto task = make_task({.task = std::string(kSmallPathfinder) + ",patch=4"});
  ModelConfig shape;
  task->shape(shape);
  EXPECT_EQ(shape.grid, (std::vector<int64_t>{8, 8}));
  EXPECT_EQ(shape.patch, 16);
  EXPECT_EQ(task->eval_batch("train", 0, 3).tokens.sizes(), at::IntArrayRef({3, 1024}));
  expect_task_keeps_its_promises({.task = std::string(kSmallPathfinder) + ",patch=4"});
}

TEST(PathfinderTask, ReadsTheArenasFolderAndPreparedSets) {
  const TempFolder folder;
  std::string lines;
  for (int i = 0; i < 10; ++i) {
    const std::string name = std::to_string(i) + ".png";
    put(folder / ("imgs/0/" + name),
        data::grey_png({2, 2, std::vector<uint8_t>(4, static_cast<uint8_t>(i))}));
    lines += "imgs/0 " + name + " 0 " + std::to_string(i % 2) + "\n";
  }
  put(folder / "metadata/0.npy", lines);
  const auto raw = make_task({.task = "pathfinder", .path = folder.path()});
  EXPECT_EQ(raw->size("train"), 8);
  const Batch batch = raw->eval_batch("valid", 0, 1);
  EXPECT_EQ(row_of(batch.tokens, {}, 0), (std::vector<int64_t>{8, 8, 8, 8}));
  {
    data::ExampleWriter writer(folder / "set",
                               {"", "pathfinder", 256, {}, {{"side", "2"}}}, {}, 2);
    data::read_pathfinder_examples(
        folder.path(), 1,
        [&](const std::string& split, const data::Example& example, double) {
          writer.add(split, example);
        });
    writer.commit();
  }
  const auto set = make_task({.task = "pathfinder", .path = folder / "set"});
  expect_same_batch(raw->train_batch(1, 0, 5), set->train_batch(1, 0, 5));
  // A set without a word on its patch was made pixel by pixel.
  EXPECT_THAT(
      refusal(
          [&] { make_task({.task = "pathfinder:patch=2", .path = folder / "set"}); }),
      HasSubstr("the set was prepared with patch=1; expected the same, or none"));
}

TEST(PathfinderTask, RefusesBadOptions) {
  EXPECT_THAT(refusal([] { make_task({.task = "pathfinder:contour=30"}); }),
              HasSubstr("pathfinder: expected contours of 3 paddles"));
  EXPECT_THAT(refusal([] { make_task({.task = "pathfinder:trian=3"}); }),
              HasSubstr("did you mean 'train'?"));
  EXPECT_THAT(refusal([] { make_task({.task = "pathfinder:patch=5"}); }),
              HasSubstr("pathfinder: expected a patch that divides 32, got 5"));
}

}  // namespace
}  // namespace lagwise
