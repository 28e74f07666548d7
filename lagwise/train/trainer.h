#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lagwise/train/checkpoint.h"
#include "lagwise/train/evaluation.h"
#include "lagwise/train/gradients.h"
#include "lagwise/train/metrics.h"
#include "lagwise/train/run_folder.h"
#include "lagwise/train/team.h"

namespace lagwise {

/// Is told what training does. Nothing below the program prints.
class TrainListener {
 public:
  virtual ~TrainListener() = default;
  /// Before the first step, which is that after `step`.
  virtual void starts(int64_t /*step*/, int64_t /*parameters*/, int64_t /*threads*/) {}
  /// After starts(): something the user should know, one line.
  virtual void noted(const std::string& /*line*/) {}
  virtual void stepped(const TrainingLine& /*line*/) {}  ///< after each step
  virtual void logged(const TrainingLine& /*line*/) {}   ///< a line was written
  virtual void evaluating(double /*fraction*/) {}
  virtual void evaluated(int64_t /*step*/, const Evaluation&, bool /*best*/) {}
  virtual void saved(int64_t /*step*/, const std::string& /*folder*/) {}
};

struct TrainerOptions {
  /// Goes into run.json: versions, the machine.
  std::vector<std::pair<std::string, std::string>> facts = {};
  std::function<bool()> stop = {};  ///< true: training is to save and stop
  bool fresh = false;  ///< forgets the run that is there, once all else is right
  data::FileCalls calls = {};  ///< through which checkpoints are written

  // Where several processes train one run (train/team.h).
  const ops::Peers* peers = nullptr;    ///< all of them
  const ops::Peers* columns = nullptr;  ///< those who share the columns of our rows
  std::vector<std::string> hosts = {};  ///< of each rank
  int64_t ranks_here = 1;               ///< on this host, which share its cores
};

/// Trains a model in a run's folder (docs/runs.md), from the start or from the newest
/// checkpoint there: stopped at any moment in any way and started again, a run ends
/// with the same bits as one that never stopped. That rests on each step being a
/// function of the parameters, the optimiser's state and the step's number alone.
///
/// Several processes may do so together, with the same bits as one (train/team.h). Rank
/// 0 alone touches the folder; the others have from it what it read there. A process that
/// is gone is a dist::LostPeer that names it, the step and the newest checkpoint.
///
/// A checkpoint that is damaged is passed over where an older one is whole. Data
/// without a split valid trains without evaluating.
class Trainer {
 public:
  /// Opens or makes the folder. std::invalid_argument if the model cannot take the data
  /// or the memory does not hold it, and if a run with another recipe has a checkpoint
  /// there (the keys that differ are named; the length of a schedule that does not
  /// depend on it, intervals and the place of the same data may change), DataError if
  /// its data or checkpoint does not fit, std::runtime_error if somebody else trains
  /// there at this moment.
  Trainer(const Recipe& recipe, const std::string& folder, TrainerOptions options = {});

  bool finished() const;
  int64_t step() const { return state_.step; }
  const Recipe& recipe() const { return recipe_; }
  Model& model() { return *model_; }

  /// To the end of the recipe. Diverged says where and names the last good checkpoint;
  /// Interrupted, after saving, if `stop` was set.
  void run(TrainListener& listener);

 private:
  void check_same_recipe() const;
  void rehearse() const;
  void say_what_is_odd(TrainListener& listener) const;
  void begin_from_another();
  void resume();
  void share_state();
  void describe() const;

  void train_all(TrainListener& listener);
  bool train_step();  // false: stopped on the way
  void check_parameters() const;
  void finish_step(TrainListener& listener);
  void write_line(TrainListener& listener);
  void evaluate_now(TrainListener& listener);
  void save(TrainListener& listener);
  void prune();
  [[noreturn]] void diverge(const std::string& what, const std::string& where) const;
  [[noreturn]] void interrupt(TrainListener& listener);
  bool stopped() const { return options_.stop && options_.stop(); }
  std::string newest_checkpoint() const;

  Recipe recipe_;
  TrainerOptions options_;
  Team team_;
  std::string path_;
  std::unique_ptr<RunFolder> folder_;  // locked
  std::unique_ptr<Task> task_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<AdamW> optimiser_;
  std::unique_ptr<Gradients> gradients_;
  std::unique_ptr<Metrics> metrics_;
  Checkpoints checkpoints_;
  TrainerState state_;
  TrainingLine line_;   // of the last step
  int64_t frozen_ = 0;  // parameters, in numbers
  bool has_valid_ = false;
  bool done_ = false;   // of ranks that do not see the folder: what rank 0 found there
  int64_t saved_ = -1;  // the step of the newest checkpoint; -1: none
  std::vector<std::string> passed_over_;  // what is wrong with newer checkpoints
  std::string arithmetic_change_;         // since the checkpoint, for people
  std::set<std::string> changed_;         // files of the data, of which that was said
};

}  // namespace lagwise
