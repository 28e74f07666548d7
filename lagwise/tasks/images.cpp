// The class of an image, its pixels read row by row as a sequence: CIFAR-10 in grey, as
// in the Long Range Arena, and MNIST (data/sources/image_examples.h). Encodings with two axes
// see the grid.
//
//     patch=4       a square of 4 x 4 pixels becomes one row of the model
//     colour=true   red, green and blue of CIFAR-10
//
// With either, several numbers make a row, and a linear map embeds them
// (ModelConfig::patch). Without, a pixel's brightness is a token, and each has a vector
// of its own. A prepared set keeps the arrangement it was made with.

#include <stdexcept>

#include "lagwise/data/sources/image_examples.h"
#include "lagwise/tasks/classification.h"
#include "lagwise/tasks/taking.h"

namespace lagwise {
namespace {

constexpr const char* kImagesTask = "images";

std::unique_ptr<Task> task_of(const TaskConfig& config, const data::ImageShape& shape,
                              data::ExampleSet set) {
  return std::make_unique<Classification>(
      ClassificationFacts{.name = kImagesTask,
                          .vocabulary = 256,
                          .classes = 10,
                          .length = shape.side * shape.side * shape.per_row,
                          .grid = {shape.side, shape.side},
                          .patch = shape.per_row,
                          .seed = config.seed},
      std::move(set));
}

std::unique_ptr<Task> make_prepared(const TaskConfig& config,
                                    const data::ImageReading& asked, bool was_asked) {
  data::ExampleSet set(config.path, kImagesTask, {});
  const data::ImageShape shape{set.number("side"), set.number("per_row")};
  const int64_t patch = set.number("patch");
  const bool colour = set.number("colour") != 0;
  if (was_asked && (patch != asked.patch || colour != asked.colour))
    throw std::invalid_argument(
        "images: the set was prepared with patch=" + std::to_string(patch) +
        ",colour=" + (colour ? "true" : "false") + "; expected the same, or neither");
  return task_of(config, shape, std::move(set));
}

std::unique_ptr<Task> make_images(const TaskConfig& config, Spec& options) {
  need_path(kImagesTask, config.path);
  const bool was_asked = options.text() != kImagesTask;
  data::ImageReading reading;
  reading.path = config.path;
  reading.patch = options.take("patch", 1);
  reading.colour = options.take("colour", false);
  reading.valid = take_fraction(options, "valid", 0.1);
  options.finish();  // before the work
  if (data::is_shard_set(config.path)) return make_prepared(config, reading, was_asked);
  data::ExampleSet set(data::ExampleLayout{});
  const data::ImageShape shape = data::read_image_examples(
      reading, [&](const std::string& split, const data::Example& example, double) {
        set.add(split, example);
      });
  return task_of(config, shape, std::move(set));
}

const RegisterTask images_registered({
    .name = kImagesTask,
    .summary = "the class of an image, by its pixels: CIFAR-10, MNIST",
    .metric = "accuracy",
    .make = make_images,
});

}  // namespace
}  // namespace lagwise
