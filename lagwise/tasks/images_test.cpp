#include "lagwise/data/sources/image_examples.h"
#include "lagwise/data/testing_images.h"
#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

struct ImagesTask : ::testing::Test {
  const TempFolder folder;
  std::string cifar = folder / "cifar", mnist = folder / "mnist";

  ImagesTask() {
    put_cifar(cifar);
    put_digits(mnist, "train", 30, true);
    put_digits(mnist, "t10k", 3, true);
  }
  ModelConfig shape(const std::string& task, const std::string& path) const {
    ModelConfig config;
    make_task({.task = task, .path = path})->shape(config);
    return config;
  }
};

TEST_F(ImagesTask, KeepsThePromisesOfTasks) {
  expect_task_keeps_its_promises({.task = "images", .path = mnist});
  expect_task_keeps_its_promises({.task = "images:patch=2", .path = mnist});
  expect_task_keeps_its_promises({.task = "images:patch=8,colour=true", .path = cifar});
}

TEST_F(ImagesTask, ShapesAGrid) {
  const ModelConfig pixels = shape("images", cifar);
  EXPECT_EQ(pixels.model, "classifier");
  EXPECT_EQ(pixels.vocabulary, 256);
  EXPECT_EQ(pixels.classes, 10);
  EXPECT_EQ(pixels.grid, (std::vector<int64_t>{32, 32}));
  EXPECT_EQ(pixels.patch, 1);
  EXPECT_EQ(pixels.length, 1024);
  const ModelConfig patches = shape("images:patch=4,colour=true", cifar);
  EXPECT_EQ(patches.grid, (std::vector<int64_t>{8, 8}));
  EXPECT_EQ(patches.patch, 48);
  EXPECT_EQ(patches.length, 64);
}

TEST_F(ImagesTask, NeverCutsAnImage) {
  const auto task = make_task({.task = "images", .path = mnist, .length = 3});
  const Batch batch = task->eval_batch("train", 1, 2);
  EXPECT_EQ(batch.tokens.size(1), 16);
  EXPECT_FALSE(batch.lengths.defined());
  EXPECT_EQ(batch.tokens[0][2].item<int64_t>(), 3);
  EXPECT_EQ(batch.targets[0].item<int64_t>(), 1);
}

TEST_F(ImagesTask, ReadsAPreparedSetAsItWasArranged) {
  {
    data::ExampleWriter writer(
        folder / "set",
        {"",
         "images",
         256,
         {},
         {{"side", "2"}, {"per_row", "4"}, {"patch", "2"}, {"colour", "0"}}},
        {}, 10);
    data::read_image_examples(
        {.path = mnist, .patch = 2},
        [&](const std::string& split, const data::Example& example, double) {
          writer.add(split, example);
        });
    writer.commit();
  }
  const auto raw = make_task({.task = "images:patch=2", .path = mnist});
  const auto set = make_task({.task = "images", .path = folder / "set"});
  expect_same_batch(raw->train_batch(1, 2, 9), set->train_batch(1, 2, 9));
  EXPECT_EQ(shape("images", folder / "set").patch, 4);
  EXPECT_THAT(
      refusal([&] { make_task({.task = "images:patch=4", .path = folder / "set"}); }),
      HasSubstr("images: the set was prepared with patch=2; expected the same, or"));
  EXPECT_THAT(
      refusal([&] { make_task({.task = "images:size=8", .path = folder / "set"}); }),
      HasSubstr("images: the set was prepared with size=4; expected the same, or"));
  EXPECT_THAT(
      refusal([&] { make_task({.task = "images:valid=0.2", .path = folder / "set"}); }),
      HasSubstr("images: unknown option 'valid'; its options are patch, colour, size, "
                "for " +
                folder / "set" + " is prepared and has the others fixed"));
  EXPECT_NO_THROW(make_task(
      {.task = "images:patch=2,colour=false,size=4", .path = folder / "set"}));
}

TEST_F(ImagesTask, NamesDamagedFiles) {
  put(cifar + "/data_batch_2.bin", "\xb");
  EXPECT_THAT(data_error([&] { make_task({.task = "images", .path = cifar}); }),
              HasSubstr("data_batch_2.bin, byte"));
  EXPECT_THAT(refusal([&] { make_task({.task = "images:patch=3", .path = mnist}); }),
              HasSubstr("images: expected a patch that divides 4, got 3"));
}

}  // namespace
}  // namespace lagwise
