#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lagwise/cli/child.h"
#include "lagwise/study/compare/ledger.h"
#include "lagwise/study/compare/plan.h"

namespace lagwise::cli {

struct RunnerOptions {
  double minutes = 60;    ///< of all commands together
  int64_t jobs = 1;       ///< runs side by side
  int64_t processes = 1;  ///< that train each run (`lagwise launch`)
  int64_t threads = 0;    ///< of each; 0: as the recipe says
  std::string lengths;    ///< of `lagwise eval`
  int64_t windows = 64, examples = 0;
  int64_t decoded = 256;  ///< tokens by which decoding is timed
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

/// Trains and judges the cells of a comparison, each in processes of its own (`lagwise
/// train`, then `lagwise eval`), so that its peak of memory is its own and its crash as
/// well.
///
/// Breadth first: one seed of every cell before a second. Where learning rates are
/// searched, seed 0 is trained with all of them, and further seeds with the one whose
/// lowest loss on the split valid was the lowest. No run is begun after the minutes are
/// spent; those that run then are brought to their end, because a run that stopped
/// short could not be compared. What a killed or interrupted command has done is found
/// in the folders, and the next one goes on from there.
class CompareRunner {
 public:
  CompareRunner(const CompareRequest& request, const std::vector<GridCell>& cells,
                RunnerOptions options, CompareLedger& ledger);

  /// Interrupted after Ctrl-C, when all runs have saved.
  void run();

  enum class State { waiting, running, done, failed };
  State state(const GridCell& cell, int64_t seed) const;

  /// The cell of a group whose learning rate won; null: not known yet.
  const GridCell* chosen(size_t group) const;

  int64_t asked() const;  ///< runs in all
  int64_t done() const;   ///< of them

 private:
  enum class Stage { train, judge, decode };
  struct Job {
    const GridCell* cell;
    int64_t seed;
    Stage stage = Stage::train;
    int attempts = 1;
    std::unique_ptr<Child> child = nullptr;
  };

  State found(const GridCell& cell, int64_t seed);
  bool next(Job& job) const;
  std::vector<std::string> train_words(const GridCell& cell, int64_t seed) const;
  void start(Job& job);
  bool advance(Job& job);  // false: it is over
  bool over(Job& job, State state);
  bool complain(Job& job, int code);
  double spent() const;  // seconds, with those not yet written down
  void account(bool now);
  void tell();
  bool may_start() const;
  std::string key(const Job& job) const;
  std::string log_of(const Job& job) const;
  std::string marker() const;

  const CompareRequest& request_;
  const std::vector<GridCell>& cells_;
  RunnerOptions options_;
  CompareLedger& ledger_;
  std::map<std::pair<std::string, int64_t>, State> states_;  // by cell and seed
  std::vector<Job> running_;
  std::chrono::steady_clock::time_point counted_;  // up to here time is accounted
  std::chrono::steady_clock::time_point told_;     // when progress was last said
};

}  // namespace lagwise::cli
