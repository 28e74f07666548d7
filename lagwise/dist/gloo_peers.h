#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lagwise/dist/world.h"
#include "lagwise/ops/peers.h"

namespace lagwise::dist {

/// Peers that are processes, on one host or on many.
class ProcessPeers : public ops::Peers {
 public:
  /// The name of each rank's host.
  virtual const std::vector<std::string>& hosts() const = 0;
  int ranks_on_this_host() const;

  /// What this process gave to others so far, in bytes.
  virtual int64_t bytes_sent() const = 0;

  /// Waits for others at least so long from here on. What a rank does between two
  /// exchanges takes its time, and slow is not lost.
  virtual void wait_at_least(std::chrono::milliseconds time) = 0;

  /// Some of us by themselves: ranks 0, 1, ... of the group are these, in this order. All
  /// of them call this, and it must not outlive us.
  virtual std::unique_ptr<ops::Peers> group(const std::vector<int>& members) const = 0;
};

/// Whether this build can connect processes: with Debian's torch it can; the wheels of
/// torch come without the headers of Gloo.
bool has_gloo();

/// Finds the other processes of the world and connects to them, with Gloo, torch's
/// transport for CPUs. All of them call this, within `timeout`; none waits longer than
/// that for any other afterwards. Bytes go from process to process alone, never through
/// Gloo's own sums, whose order depends on the number of processes.
///
/// LostPeer names who did not come; std::runtime_error where the port is taken or this
/// build has no Gloo; std::invalid_argument where a host would offer an address that
/// others cannot reach (GLOO_SOCKET_IFNAME names the interface to use instead).
std::unique_ptr<ProcessPeers> meet(const World& world,
                                   std::chrono::milliseconds timeout);

}  // namespace lagwise::dist
