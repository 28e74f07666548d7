#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/train/adamw.h"
#include "lagwise/train/trainer_state.h"

namespace lagwise {

/// The checkpoints of a run's folder (docs/runs.md). One appears whole or not at all:
///
///     write all files into STEP.tmp, each synced -> sync STEP.tmp -> rename to STEP
///     -> sync the parent -> remove those that are neither the newest nor the best
///
/// so that at any moment at least one whole checkpoint stands, once there was one.
class Checkpoints {
 public:
  explicit Checkpoints(const std::string& run, data::FileCalls calls = {});

  /// The steps of the whole ones, lowest first. A folder that does not exist has none.
  std::vector<int64_t> steps() const;
  std::string folder(int64_t step) const;

  /// Writes a checkpoint of `state.step`, unless there is one. Errors are
  /// std::runtime_error with the system's reason; those before it then still stand.
  void save(TrainerState state, const AdamW& optimiser);

  /// Gives the checkpoint of `state.step` this state: its tensors are as they were.
  void update(TrainerState state);

  /// Removes what is unfinished, and all whose step is not in `keep`.
  void prune(const std::vector<int64_t>& keep);

  /// What is wrong with the files of a checkpoint: unreadable, cut short, not what
  /// their hashes say, parameters that are no finite numbers; nothing: it is whole.
  std::optional<DataError> damage(int64_t step) const;

  /// DataError names the file and what is wrong with it.
  TrainerState read_state(int64_t step) const;
  void read_model(int64_t step, const std::vector<NamedTensor>& parameters) const;
  void read_optimiser(int64_t step, const AdamW& optimiser) const;

 private:
  std::string file(int64_t step, const char* name) const;
  TrainerState parsed_state(int64_t step) const;
  std::string hash_of(int64_t step, const char* name) const;

  std::string root_;
  data::FileCalls calls_;
};

}  // namespace lagwise
