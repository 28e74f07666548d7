#include "lagwise/train/run.h"

#include <filesystem>
#include <optional>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/core/usable_memory.h"
#include "lagwise/models/model.h"
#include "lagwise/train/checkpoint.h"
#include "lagwise/train/memory_needed.h"
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
void check_data(const Run& run) {
  const ModelConfig& was = run.model_config();
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
  if (apart.empty() && run.task->words() != run.words)
    apart = "the words of its vocabulary, but the data has others";
  if (apart.empty() && run.task->tokenizer() != run.tokenizer)
    apart = "its tokenizer, but the data has another";
  if (!apart.empty()) throw DataError(run.folder, -1, apart);
}

/// What a checkpoint holds, put into `run`. The state is what a trainer wrote: what it
/// says wrongly is damage, not wrong use.
TrainerState load(const Checkpoints& checkpoints, int64_t newest, Which which,
                  Run& run) {
  TrainerState state = checkpoints.read_state(newest);
  if (which == Which::best && state.best && state.best->step != state.step)
    state = checkpoints.read_state(state.best->step);
  const std::string file = run_file(checkpoints.folder(state.step), "state.json");
  const double bytes = 4 * least_parameters(state.model);
  if (bytes > usable_memory())
    throw DataError(file, -1,
                    "a model that fits into memory, got one of at least " +
                        std::to_string(static_cast<int64_t>(bytes / 1e9)) + " GB");
  try {
    run.recipe = parse_kept_recipe(file, state.recipe);
    run.model = make_model(state.model);
  } catch (const std::invalid_argument& error) {
    throw DataError(
        file, -1,
        std::string("a recipe and a model as lagwise writes them: ") + error.what());
  }
  checkpoints.read_model(state.step, trained_parameters(*run.model));
  return state;
}

/// The newest checkpoint, or the best it knows of; where it is damaged, the same of the
/// one before it. A trainer may remove one between our listing and our reading it.
TrainerState load(const std::string& folder, Which which, Run& run) {
  const Checkpoints checkpoints(folder);
  for (;;) {
    const std::vector<int64_t> steps = checkpoints.steps();
    if (steps.empty())
      throw DataError(folder, -1, "a checkpoint in the run; none is there yet");
    std::optional<DataError> newest;
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      try {
        TrainerState state = load(checkpoints, *step, which, run);
        if (newest)
          run.notes.push_back(
              "passed over a damaged checkpoint: " + std::string(newest->what()) +
              "; taking " + checkpoints.folder(state.step));
        return state;
      } catch (const DataError& error) {
        if (!newest) newest = error;
        if (checkpoints.steps() != steps) break;
      }
    }
    if (checkpoints.steps() == steps) throw DataError(newest.value());
  }
}

}  // namespace

void open_data(Run& run) {
  const std::string& path = run.recipe.data.path;
  if (!path.empty() && !std::filesystem::exists(path))
    throw DataError(path, -1,
                    "the data of " + run.folder +
                        ", and nothing is there; --data says where it is now");
  run.task = make_task(run.recipe.data);
  check_data(run);
}

Run open_run(const std::string& folder, Which which, const std::string& data_path,
             bool with_task) {
  if (!std::filesystem::exists(run_file(folder, "recipe.toml")))
    throw DataError(folder, -1, "the folder of a run, with recipe.toml in it");
  Run run;
  run.folder = folder;
  const TrainerState state = load(folder, which, run);
  run.words = state.words, run.tokenizer = state.tokenizer;
  run.class_names = state.class_names;
  run.data_hash = state.data_hash;
  run.recipe.model = state.model;
  run.step = state.step;
  if (!data_path.empty()) run.recipe.data.path = data_path;
  if (with_task) open_data(run);
  run.model->eval();
  return run;
}

}  // namespace lagwise
