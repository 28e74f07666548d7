// Which way does it go? Short clips of a shape that crosses a still background, read
// frame by frame (data/sources/moving.h): time, rows and columns, the task for encodings
// of three axes.
//
//     data.path empty   strokes, made
//     pictures          such as MNIST: what the task images reads moves instead
//
// frames=8 of 28 x 28 pixels each; patch=4 makes one row of the model of 4 x 4 pixels, so
// that a clip is a grid of 8 x 7 x 7 rows.

#include "lagwise/data/sources/moving_examples.h"
#include "lagwise/tasks/classification.h"
#include "lagwise/tasks/taking.h"

namespace lagwise {
namespace {

constexpr const char* kMovingTask = "moving";

std::unique_ptr<Task> make_moving(const TaskConfig& config, Spec& options) {
  data::MovingMaking making;
  making.train = take_count(options, "train", 4000);
  making.valid = take_count(options, "valid", 400);
  making.test = take_count(options, "test", 1000);
  making.rules.frames = options.take("frames", making.rules.frames);
  making.patch = options.take("patch", making.patch);
  making.seed = config.seed, making.path = config.path;
  options.finish();  // before the work
  data::ExampleSet set(data::ExampleLayout{});
  data::make_moving_examples(
      making, [&](const std::string& split, const data::Example& example, double) {
        set.add(split, example);
      });
  const auto [frames, side] = making.rules;
  return std::make_unique<Classification>(
      ClassificationFacts{.name = kMovingTask,
                          .vocabulary = 256,
                          .classes = std::ssize(data::moving_directions()),
                          .length = frames * side * side,
                          .grid = {frames, side / making.patch, side / making.patch},
                          .patch = making.patch * making.patch,
                          .class_names = data::moving_directions(),
                          .seed = config.seed},
      std::move(set));
}

const RegisterTask moving_registered({
    .name = kMovingTask,
    .summary = "which way something moves, in clips of time, rows and columns: made",
    .metric = "accuracy",
    .make = make_moving,
});

}  // namespace
}  // namespace lagwise
