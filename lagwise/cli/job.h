#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "lagwise/dist/gloo_peers.h"
#include "lagwise/train/trainer.h"

namespace lagwise::cli {

/// The processes that somebody started to do one thing together (dist/world.h), this one
/// among them. Started by nobody, we are alone.
class Job {
 public:
  /// Meets the others. `timeout`: seconds that a process may be silent for; 0: what
  /// LAGWISE_TIMEOUT says, else 60.
  explicit Job(double timeout);

  bool first() const { return !peers_ || peers_->rank() == 0; }
  int rank() const { return peers_ ? peers_->rank() : 0; }

  /// Makes all of them train one run, of this recipe.
  void join(const Recipe& recipe, TrainerOptions& options);

  /// By this process, in a job.
  int64_t bytes_sent() const { return peers_ ? peers_->bytes_sent() : 0; }
  bool alone() const { return !peers_; }

  /// Waits for a process that is slower than the timeout thought: ten steps at least.
  void step_took(double seconds) const;

 private:
  std::unique_ptr<dist::ProcessPeers> peers_;
  std::unique_ptr<ops::Peers> columns_;
};

/// Where a rank writes what it has to say: RUN/ranks/1.log.
std::string rank_log(const std::string& run, int rank);

}  // namespace lagwise::cli
