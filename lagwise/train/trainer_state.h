#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lagwise/train/arithmetic.h"
#include "lagwise/train/recipe.h"

namespace lagwise {

/// Where the weights that a run began with came from (train/pretrained.h). Tensors are
/// listed as "head.out.weight [2, 64]".
struct Origin {
  std::string from = {};  ///< a run or a checkpoint, as the recipe names it
  int64_t step = 0;       ///< of the checkpoint
  int64_t taken = 0;      ///< tensors, whole or in part
  std::vector<std::string> partly = {};   ///< those of which only some rows are alike
  std::vector<std::string> anew = {};     ///< of this model: drawn by its own seed
  std::vector<std::string> left = {};     ///< only there
  std::vector<std::string> changed = {};  ///< keys of the model that are others here
};

/// What a run has to know besides tensors in order to go on as if it had never
/// stopped: the contents of a checkpoint's state.json.
struct TrainerState {
  int64_t step = 0;  ///< updates made

  struct Best {
    int64_t step = 0;
    double value = 0;  ///< of the task's metric on the split valid
  };
  std::optional<Best> best;

  /// False: the evaluation due at this step is still to be made. A checkpoint is saved
  /// before it, so that nothing an evaluation can do loses work.
  bool judged = true;

  int64_t tokens = 0;       ///< trained on
  int64_t tokens_read = 0;  ///< of the past before them
  double seconds = 0;       ///< of training

  /// Since the last line of metrics.jsonl.
  struct Pending {
    double loss = 0;  ///< summed
    int64_t targets = 0, tokens = 0;
    double seconds = 0;
  } pending;

  int64_t threads = 0;                   ///< kept on resume: results depend on it
  Arithmetic arithmetic;                 ///< that made it; empty in older checkpoints
  ModelConfig model;                     ///< as the data completed it
  std::vector<std::string> words;        ///< names of the tokens; empty: bytes
  std::string tokenizer;                 ///< of them, as tokenizer.json; empty: none
  std::vector<std::string> class_names;  ///< empty: numbers, or no classes
  uint64_t data_hash = 0;
  std::string recipe;            ///< resolved
  std::optional<Origin> origin;  ///< nothing: it began with weights of its own

  /// The hash of each other file of the checkpoint, by its name; empty in checkpoints
  /// written before there were any.
  std::map<std::string, std::string> files;
};

/// As JSON. Its last entry is the FNV-1a hash of the text before it.
std::string state_text(const TrainerState& state);

/// DataError names `file` and the entry that is missing or of another kind, or says
/// that the text is not that of its hash. A text without one is taken as it is.
TrainerState parse_state(const std::string& file, const std::string& text);

/// A model's config as JSON, one line: in state.json and run.json.
std::string model_config_text(const ModelConfig& config);

/// An origin as JSON, one line: in state.json and run.json.
std::string origin_text(const Origin& origin);

/// A model's config from its JSON; `file` stands for where that is from in messages.
ModelConfig parse_model_config(const std::string& file, const std::string& text);

}  // namespace lagwise
