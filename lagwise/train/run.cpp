#include "lagwise/train/run.h"

#include <filesystem>

#include "lagwise/core/errors.h"
#include "lagwise/models/model.h"
#include "lagwise/train/checkpoint.h"
#include "lagwise/train/run_folder.h"

namespace lagwise {
namespace {

std::string number_list(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

/// What the data makes of the model against what the checkpoint holds.
void check_data(const std::string& folder, const Run& run, const TrainerState& state) {
  const ModelConfig& was = state.model;
  const ModelConfig is = completed_model(run.recipe, *run.task);
  std::string apart;
  const auto compare = [&](const char* what, const std::string& then,
                           const std::string& now) {
    if (then != now)
      apart += (apart.empty() ? "" : "; ") + std::string(what) + " " + then +
               ", but the data gives " + now;
  };
  compare("model", was.model, is.model);
  compare("vocabulary", std::to_string(was.vocabulary), std::to_string(is.vocabulary));
  compare("classes", std::to_string(was.classes), std::to_string(is.classes));
  compare("patch", std::to_string(was.patch), std::to_string(is.patch));
  compare("grid", number_list(was.grid), number_list(is.grid));
  if (apart.empty() && run.task->words() != state.words)
    apart = "the words of its vocabulary, but the data has others";
  if (!apart.empty()) throw DataError(folder, -1, apart);
}

/// A trainer may remove a checkpoint between our listing and our reading it.
TrainerState load(const std::string& folder, Which which, Run& run) {
  const Checkpoints checkpoints(folder);
  for (;;) {
    const std::vector<int64_t> steps = checkpoints.steps();
    if (steps.empty())
      throw DataError(folder, -1, "a checkpoint in the run; none is there yet");
    try {
      TrainerState state = checkpoints.read_state(steps.back());
      if (which == Which::best && state.best && state.best->step != state.step)
        state = checkpoints.read_state(state.best->step);
      run.model = make_model(state.model);
      checkpoints.read_model(state.step, trained_parameters(*run.model));
      return state;
    } catch (const DataError&) {
      if (checkpoints.steps() == steps) throw;
    }
  }
}

}  // namespace

Run open_run(const std::string& folder, Which which, const std::string& data_path,
             bool with_task) {
  if (!std::filesystem::exists(run_file(folder, "recipe.toml")))
    throw DataError(folder, -1, "the folder of a run, with recipe.toml in it");
  Run run;
  run.folder = folder;
  const TrainerState state = load(folder, which, run);
  run.recipe = parse_recipe(run_file(folder, "state.json"), state.recipe);
  run.recipe.model = state.model;
  run.step = state.step, run.data_hash = state.data_hash;
  if (!data_path.empty()) run.recipe.data.path = data_path;
  if (with_task) {
    run.task = make_task(run.recipe.data);
    check_data(folder, run, state);
  }
  run.model->eval();
  return run;
}

}  // namespace lagwise
