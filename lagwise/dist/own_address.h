#pragma once

#include <string>
#include <vector>

namespace lagwise::dist {

/// The address of this host from which packets to `host` go out: the one that whoever sits
/// there can reach us by. No packet is sent. Where it cannot be told, 127.0.0.1.
///
/// This host's own name is no help: Debian maps it to 127.0.1.1.
std::string own_address(const std::string& host, int port);

/// 127.0.0.1, 127.0.1.1, ::1: every host has these for itself.
bool is_loopback(const std::string& address);

/// std::invalid_argument names a rank that offers a loopback address while another rank
/// is on another host, or offers an address of a network.
void check_reachable(const std::vector<std::string>& addresses,
                     const std::vector<std::string>& hosts);

}  // namespace lagwise::dist
