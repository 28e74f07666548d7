#include "lagwise/data/testing_images.h"
#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

const char* const kSmallMoving = "moving:train=12,valid=2,test=3,frames=3,patch=7";

ModelConfig shape_of(const std::string& task) {
  ModelConfig config;
  make_task({.task = task})->shape(config);
  return config;
}

TEST(MovingTask, KeepsThePromisesOfTasks) {
  expect_task_keeps_its_promises({.task = kSmallMoving});
}

TEST(MovingTask, ShapesAGridOfThreeAxes) {
  const ModelConfig usual = shape_of("moving:train=1,valid=0,test=0");
  EXPECT_EQ(usual.model, "classifier");
  EXPECT_EQ(usual.classes, 8);
  EXPECT_EQ(usual.grid, (std::vector<int64_t>{8, 7, 7}));
  EXPECT_EQ(usual.patch, 16);
  EXPECT_EQ(usual.length, 8 * 7 * 7);
  EXPECT_EQ(shape_of(kSmallMoving).grid, (std::vector<int64_t>{3, 4, 4}));
  const auto task = make_task({.task = kSmallMoving, .length = 5});
  EXPECT_EQ(task->size("train"), 12);
  EXPECT_EQ(task->eval_batch("test", 0, 3).tokens.sizes(),
            at::IntArrayRef({3, int64_t{3} * 28 * 28}));  // never cut
  EXPECT_EQ(task->class_names()[2], "down");
}

TEST(MovingTask, MovesPictures) {
  const TempFolder folder;
  put_digits(folder / "mnist", "train", 30, true);
  put_digits(folder / "mnist", "t10k", 3, true);
  const auto drawn = make_task({.task = kSmallMoving}),
             moved = make_task({.task = kSmallMoving, .path = folder / "mnist"});
  EXPECT_NE(drawn->hash(), moved->hash());
  expect_task_keeps_its_promises({.task = kSmallMoving, .path = folder / "mnist"});
}

/// A small model on the clips, with room for three axes in its heads.
ModelConfig seen_by(const std::string& encoding, const std::string& geometry = "auto") {
  ModelConfig config = shape_of(kSmallMoving);
  config.layers = 1, config.dim = 24, config.heads = 2;
  config.encoding = encoding, config.geometry = geometry;
  return config;
}

TEST(MovingTask, IsSeenOnThreeAxesByEncodingsThatTakeThem) {
  const Batch batch = make_task({.task = kSmallMoving})->train_batch(0, 0, 4);
  for (const char* const encoding :
       {"rope:layout=half", "lrpe", "conv_spe:kernel=3x3x3,realizations=4", "none"}) {
    SCOPED_TRACE(encoding);
    const ModelConfig config = seen_by(encoding);
    EXPECT_EQ(seen_grid(config), (std::vector<int64_t>{3, 4, 4}));
    const Loss loss = make_model(config)->loss(batch, {.seed = 1});
    loss.sum.backward();
    EXPECT_TRUE(std::isfinite(loss.sum.item<double>()));
  }
  for (const char* const encoding :
       {"sinusoidal", "alibi", "sine_spe", "conv_spe:kernel=8,realizations=4"}) {
    SCOPED_TRACE(encoding);
    EXPECT_TRUE(seen_grid(seen_by(encoding)).empty());
    EXPECT_THAT(refusal([&] { make_model(seen_by(encoding, "grid")); }),
                HasSubstr("expected an encoding of 3 axes where it is grid"));
  }
  const auto logits = [&](const ModelConfig& config) {
    return make_model(config)->logits(batch, {}).detach();
  };
  const char* const rope = "rope:layout=half";
  EXPECT_TRUE(seen_grid(seen_by(rope, "line")).empty());
  EXPECT_FALSE(
      at::allclose(logits(seen_by(rope, "line")), logits(seen_by(rope, "grid"))));
}

TEST(MovingTask, RefusesBadOptions) {
  EXPECT_THAT(refusal([] { make_task({.task = "moving:frames=1"}); }),
              HasSubstr("moving: expected 2 to 64 frames, got 1"));
  EXPECT_THAT(refusal([] { make_task({.task = "moving:patch=5"}); }),
              HasSubstr("moving: expected a patch that divides 28, got 5"));
  EXPECT_THAT(refusal([] { make_task({.task = "moving:trian=3"}); }),
              HasSubstr("did you mean 'train'?"));
}

}  // namespace
}  // namespace lagwise
