// Do two discs lie on one snake of paddles? Images read pixel by pixel, or in squares.
//
//     data.path empty   made by the rules of the Long Range Arena (data/sources/pathfinder.h)
//     a folder          the Arena's own, such as curv_contour_length_14
//     a prepared set    of `lagwise data pathfinder`
//
// contour=14 is hard, 9 intermediate, 6 easy. With patch=4 a square of 4 x 4 pixels
// becomes one row of the model, as in the task images. A prepared set keeps the patch it
// was made with.

#include <stdexcept>

#include "lagwise/data/sources/pathfinder_examples.h"
#include "lagwise/tasks/classification.h"
#include "lagwise/tasks/taking.h"
#include "lagwise/tasks/unlabelled_pictures.h"

namespace lagwise {
namespace {

constexpr const char* kPathfinderTask = "pathfinder";

data::PathfinderMaking pathfinder_making(const TaskConfig& config, Spec& options) {
  data::PathfinderMaking making;
  making.train = take_count(options, "train", 2000);
  making.valid = take_count(options, "valid", 200);
  making.test = take_count(options, "test", 500);
  making.rules.contour_length = static_cast<int>(take_count(options, "contour", 14));
  making.patch = take_count(options, "patch", 1);
  making.seed = config.seed;
  options.finish();  // before the work
  return making;
}

std::unique_ptr<Task> task_of(const TaskConfig& config, int64_t side, int64_t patch,
                              data::ExampleSet set) {
  return std::make_unique<Classification>(
      ClassificationFacts{.name = kPathfinderTask,
                          .vocabulary = 256,
                          .classes = 2,
                          .length = side * side,
                          .grid = {side / patch, side / patch},
                          .patch = patch * patch,
                          .seed = config.seed},
      std::move(set));
}

std::unique_ptr<Task> prepared_paths(const TaskConfig& config, Spec& options) {
  data::ExampleSet set(config.path, kPathfinderTask, {});
  const int64_t patch = set.number("patch", 1);
  take_fixed(options, "patch", patch);
  const int64_t side = set.number("side");
  return task_of(config, side, patch, std::move(set));
}

std::unique_ptr<Task> make_pathfinder(const TaskConfig& config, Spec& options) {
  if (!config.path.empty() && data::is_shard_set(config.path))
    return prepared_paths(config, options);
  data::ExampleSet set(data::ExampleLayout{});
  const auto gather = [&](const std::string& split, const data::Example& example,
                          double) { set.add(split, example); };
  if (config.path.empty()) {
    const data::PathfinderMaking plan = pathfinder_making(config, options);
    data::make_pathfinder_examples(plan, gather);
    return task_of(config, plan.rules.side, plan.patch, std::move(set));
  }
  const int64_t patch = take_count(options, "patch", 1);
  const int64_t side = data::read_pathfinder_examples(config.path, patch, gather);
  return task_of(config, side, patch, std::move(set));
}

const RegisterTask pathfinder_registered({
    .name = kPathfinderTask,
    .summary = "do two discs lie on one path: made, or the Long Range Arena's images",
    .metric = "accuracy",
    .make = make_pathfinder,
    .unlabelled = unlabelled_pictures,
});

}  // namespace
}  // namespace lagwise
