#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lagwise/cli/child.h"

namespace lagwise::cli {

/// What a job is started with on one host.
struct LaunchPlan {
  std::vector<std::string> words;  ///< of each process: "train", "R.toml"
  int first = 0, here = 1;         ///< ranks first .. first + here - 1 are started
  int size = 1;                    ///< ranks on all hosts
  std::string address = "127.0.0.1";
  int port = 0;         ///< of rank 0's store
  std::string job;      ///< sets it apart from others, and from its earlier beginnings
  double timeout = 60;  ///< seconds
  std::string run;      ///< the folder of the run, for the logs of ranks
};

/// The processes of a job that run on this host. Rank 0 speaks for all of them, the
/// others write to RUN/ranks/RANK.log.
///
/// When one fails the others notice and end by themselves; those that do not within
/// seconds are ended, so nothing is left behind. One that is stopped (SIGSTOP) for longer
/// than a moment is ended too: nobody could go on without it.
class RankProcesses {
 public:
  explicit RankProcesses(const LaunchPlan& plan);

  /// Waits for all of them. Ctrl-C and SIGTERM are handed on, which makes them save. The
  /// exit code of the job: that of the process that failed first, or kPeerLost where
  /// one was killed.
  int wait();

  /// What a rank other than 0 complained of, where rank 0 could not say it: empty where
  /// all has been said.
  std::string complaint() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Rank {
    int number;
    std::string log;  // empty: it speaks for itself
    std::unique_ptr<Child> child;
    std::optional<int> code = {};  // once it has ended
    std::optional<Time> stopped = {};
  };
  bool all_ended() const;
  void look_after(Rank& rank);
  void note_failure(const Rank& rank, Time now);
  void hand_on_stop();
  void end_the_rest();

  std::vector<Rank> ranks_;
  std::optional<int> failed_;  // the place in ranks_ of the first that failed
  Time failed_at_ = {};
  bool asked_to_stop_ = false;
};

/// A port of this host that nobody listens on at this moment.
int free_port();

}  // namespace lagwise::cli
