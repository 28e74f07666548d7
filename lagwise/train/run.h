#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lagwise/ops/encoded.h"
#include "lagwise/train/recipe.h"

namespace lagwise {

class Model;

/// A run's folder (docs/runs.md), opened to be looked at: a model with its trained
/// parameters, and the task it was trained on.
struct Run {
  std::string folder;
  Recipe recipe;
  std::unique_ptr<Task> task;
  std::shared_ptr<Model> model;          ///< in evaluation mode; null: it was exported
  int64_t step = 0;                      ///< of the checkpoint
  std::vector<std::string> words;        ///< names of the tokens; empty: bytes
  std::string tokenizer;                 ///< of them, as tokenizer.json; empty: none
  std::vector<std::string> class_names;  ///< empty: numbers, or no classes
  uint64_t data_hash = 0;                ///< of the data it was trained on
  std::vector<std::string> notes;        ///< what the user should know, a line each

  /// Of the model, which may be another one than `model` (train/exported_model.h).
  const ModelConfig& model_config() const { return recipe.model; }

  /// The moment whose noise evaluation and generation use.
  Draw draw() const { return {recipe.train.seed, step}; }
};

/// Which checkpoint: the best on the split valid, or the newest.
enum class Which { best, last };

/// `data_path`: where the data is now, if not where it was; `with_task`: false leaves
/// the data unread. DataError for a folder that is no run, has no whole checkpoint, or
/// whose vocabulary or shapes differ from the checkpoint's, with the differences, and
/// for data that is not where the run says. Where the newest checkpoint is damaged an
/// older one is taken: the notes say so. Other data than was trained on is no error.
Run open_run(const std::string& folder, Which which = Which::best,
             const std::string& data_path = "", bool with_task = true);

/// Reads the data of a run that was opened without it.
void open_data(Run& run);

}  // namespace lagwise
