#pragma once

#include <stdexcept>
#include <string>

namespace lagwise::dist {

/// A process of the job is gone: killed, stopped, cut off, or never there. Nothing that
/// was being exchanged may be used. Exit code 5.
class LostPeer : public std::runtime_error {
 public:
  /// `host` may be empty where nobody knows it.
  LostPeer(int rank, const std::string& host, const std::string& why)
      : std::runtime_error(named(rank, host) + " was lost: " + why),
        who_(named(rank, host)),
        why_(why),
        rank_(rank) {}

  /// The same loss, told by somebody who knows more of what it means.
  LostPeer(const LostPeer& lost, const std::string& what)
      : std::runtime_error(what), who_(lost.who_), why_(lost.why_), rank_(lost.rank_) {}

  int rank() const { return rank_; }
  const std::string& who() const { return who_; }  ///< "rank 1 (host b)"
  const std::string& why() const { return why_; }  ///< "its connection is closed"

 private:
  static std::string named(int rank, const std::string& host) {
    return "rank " + std::to_string(rank) +
           (host.empty() ? "" : " (host " + host + ")");
  }

  std::string who_, why_;
  int rank_;
};

}  // namespace lagwise::dist
