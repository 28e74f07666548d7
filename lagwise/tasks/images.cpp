// The class of an image, its pixels read row by row as a sequence: CIFAR-10 in grey, as
// in the Long Range Arena, MNIST, and pictures in a folder for each class
// (data/sources/image_examples.h). Encodings with two axes see the grid.
//
//     patch=4       a square of 4 x 4 pixels becomes one row of the model
//     colour=true   red, green and blue
//     size=32       pictures in folders are cut to a square and made so wide
//
// With either, several numbers make a row, and a linear map embeds them
// (ModelConfig::patch). Without, a pixel's brightness is a token, and each has a vector
// of its own. A prepared set keeps the arrangement it was made with.

#include <stdexcept>

#include "lagwise/data/sources/image_examples.h"
#include "lagwise/tasks/classification.h"
#include "lagwise/tasks/taking.h"
#include "lagwise/tasks/unlabelled_pictures.h"

namespace lagwise {
namespace {

constexpr const char* kImagesTask = "images";

std::unique_ptr<Task> task_of(const TaskConfig& config, const data::ImageShape& shape,
                              data::ExampleSet set) {
  return std::make_unique<Classification>(
      ClassificationFacts{
          .name = kImagesTask,
          .vocabulary = 256,
          .classes = shape.classes.empty() ? 10 : std::ssize(shape.classes),
          .length = shape.side * shape.side * shape.per_row,
          .grid = {shape.side, shape.side},
          .patch = shape.per_row,
          .class_names = shape.classes,
          .seed = config.seed},
      std::move(set));
}

std::unique_ptr<Task> prepared_images(const TaskConfig& config, Spec& options) {
  data::ExampleSet set(config.path, kImagesTask, {});
  data::ImageShape shape;
  shape.side = set.number("side"), shape.per_row = set.number("per_row");
  shape.classes = set.class_names();
  const int64_t patch = set.number("patch");
  take_fixed(options, "patch", patch);
  take_fixed(options, "colour", set.number("colour") != 0);
  take_fixed(options, "size", shape.side * patch);
  return task_of(config, shape, std::move(set));
}

std::unique_ptr<Task> make_images(const TaskConfig& config, Spec& options) {
  need_path(kImagesTask, config.path);
  if (data::is_shard_set(config.path)) return prepared_images(config, options);
  data::ImageReading reading;
  reading.path = config.path;
  reading.patch = options.take("patch", 1);
  reading.colour = options.take("colour", false);
  reading.valid = take_fraction(options, "valid", 0.1);
  reading.test = take_fraction(options, "test", 0.1);
  reading.size = options.take("size", 0);
  if (reading.size < 0 || reading.size > 1024)
    throw std::invalid_argument("images: size: expected 0 to 1024, got " +
                                std::to_string(reading.size));
  options.finish();  // before the work
  data::ExampleSet set(data::ExampleLayout{});
  const data::ImageShape shape = data::read_image_examples(
      reading, [&](const std::string& split, const data::Example& example, double) {
        set.add(split, example);
      });
  tell(config, shape.left_out);
  return task_of(config, shape, std::move(set));
}

const RegisterTask images_registered({
    .name = kImagesTask,
    .summary = "the class of an image, by its pixels: PNG, JPEG, CIFAR-10, MNIST",
    .metric = "accuracy",
    .make = make_images,
    .unlabelled = unlabelled_pictures,
});

}  // namespace
}  // namespace lagwise
