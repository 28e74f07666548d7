#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lagwise/data/atomic_file.h"
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
  void save(const TrainerState& state, const AdamW& optimiser);

  /// Removes what is unfinished, and all whose step is not in `keep`.
  void prune(const std::vector<int64_t>& keep);

  /// DataError names the file and what is wrong with it.
  TrainerState read_state(int64_t step) const;
  void read_model(int64_t step, const std::vector<NamedTensor>& parameters) const;
  void read_optimiser(int64_t step, const AdamW& optimiser) const;

 private:
  std::string root_;
  data::FileCalls calls_;
};

}  // namespace lagwise
