#pragma once

#include <string>
#include <vector>

#include "lagwise/train/recipe.h"

namespace lagwise {

/// A run's folder (docs/runs.md) while somebody trains in it: made if need be, and
/// locked against a second trainer. The lock goes with the process, however that ends.
class RunFolder {
 public:
  /// std::runtime_error if it cannot be made, or another process trains there.
  explicit RunFolder(const std::string& path);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

 private:
  int lock_ = -1;
};

/// Whether somebody trains in a folder at this moment. Changes nothing.
bool is_being_trained(const std::string& path);

/// Where a recipe's run goes unless somebody says otherwise: runs/ and its name.
std::string default_run_folder(const std::string& recipe);

/// The path of a file of a run.
std::string run_file(const std::string& folder, const std::string& name);

/// Removes what a run left in a folder: recipe, checkpoints, metrics, evaluations,
/// samples.
void forget_run(const std::string& folder);

/// The keys in which a recipe differs from the one its run was begun with, as
/// "train.lr = 0.1, was 0.2", leaving out those that may change: title, intervals, the
/// place of the data, threads left to the machine, and more steps where the schedule
/// does not depend on their number.
std::vector<std::string> forbidden_changes(const Recipe& begun, const Recipe& now);

/// The config of a recipe's model as the data completes it.
ModelConfig completed_model(const Recipe& recipe, const Task& task);

}  // namespace lagwise
