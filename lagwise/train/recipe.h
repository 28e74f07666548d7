#pragma once

#include <string>
#include <vector>

#include "lagwise/models/model_config.h"
#include "lagwise/tasks/task.h"

namespace lagwise {

/// The [train] table of a recipe.
struct TrainConfig {
  int64_t steps = 1000;
  int64_t batch = 16;      ///< examples of a micro-step
  int64_t accumulate = 1;  ///< micro-steps of a step
  int64_t leaves = 1;      ///< slices of a batch whose gradients are summed as a tree
  int64_t sequence_ranks = 1;  ///< processes that share the columns of a row
  double lr = 3e-3;
  std::string schedule = "cosine";  ///< cosine, inverse_root, constant
  int64_t warmup = 100;             ///< steps
  double final_lr = 0.1;            ///< of cosine, as a fraction of lr
  double weight_decay = 0.01;
  double beta1 = 0.9, beta2 = 0.98, eps = 1e-9;
  double clip = 1.0;            ///< of the gradient's norm; 0: none
  std::string past = "0";       ///< windows read before one is trained on: train/past.h
  int64_t eval_every = 200;     ///< steps; 0: only at the end
  int64_t eval_examples = 256;  ///< of the split valid
  int64_t checkpoint_every = 200;
  int64_t log_every = 10;
  int64_t threads = 0;            ///< 0: all of the machine's
  std::string precision = "f32";  ///< of products in training: f32, bf16
  bool recompute = false;         ///< less memory for more time
  uint64_t seed = 0;              ///< of parameters, noise and dropout
  std::string from = {};    ///< a run to begin with the weights of: train/pretrained.h
  std::string freeze = {};  ///< parameters that stay as they are: train/frozen.h
};

/// A run, written down: a TOML file with the tables [model], [data] and [train].
struct Recipe {
  std::string title;  ///< one line for people; may be empty
  ModelConfig model;
  TaskConfig data;
  TrainConfig train;
};

/// Reads a recipe, then `set`: words "table.key=value" that go over it. A key nobody
/// knows, a value of another kind or out of range is a std::invalid_argument that
/// names file, line and key, what is legal and what may have been meant; a file that
/// is no TOML is a DataError.
Recipe read_recipe(const std::string& file, const std::vector<std::string>& set = {});

/// The same from text; `name` stands for the file in messages.
Recipe parse_recipe(const std::string& name, const std::string& text,
                    const std::vector<std::string>& set = {});

/// The whole recipe as TOML, as a run keeps it: every key written, and every option of
/// an encoding, so that it means the same to a version with other defaults.
std::string recipe_text(const Recipe& recipe);

/// The way back, from the recipe.toml of a run. What an older version left out stands
/// at the default of its time.
Recipe read_kept_recipe(const std::string& file);
Recipe parse_kept_recipe(const std::string& name, const std::string& text);

}  // namespace lagwise
