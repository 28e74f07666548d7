#pragma once

#include <string>
#include <vector>

namespace lagwise::dist {

/// What this host knows of itself that decides whether other hosts can reach it.
struct OwnHost {
  struct Interface {
    std::string name, address;
  };
  std::string name;                    ///< "beta"
  std::vector<std::string> addresses;  ///< to which the name leads, asked here
  std::vector<Interface> interfaces;   ///< that are up, loopback left out
  std::string chosen;                  ///< GLOO_SOCKET_IFNAME; empty: not set
};

std::string host_name();
OwnHost own_host();

/// Whether a job on several hosts could be met here, and why, in words for the user.
///
/// Debian writes "127.0.1.1 NAME" into /etc/hosts. A job whose first host is given by its
/// name then offers 127.0.1.1 to the others, which each of them has itself: that job is
/// refused (own_address.h), and this says so beforehand, with what to do about it.
struct Reachable {
  bool yes = false;
  std::string why;
};
Reachable reachable(const OwnHost& host);

}  // namespace lagwise::dist
