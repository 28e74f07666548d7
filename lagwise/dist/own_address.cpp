#include "lagwise/dist/own_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <stdexcept>

namespace lagwise::dist {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

/// Connecting a datagram socket only looks up the route.
std::string address_towards(const addrinfo& there) {
  const int file = socket(there.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file < 0) return kLoopback;
  sockaddr_storage ours = {};
  socklen_t size = sizeof(ours);
  std::array<char, NI_MAXHOST> text = {};
  const bool found =
      connect(file, there.ai_addr, there.ai_addrlen) == 0 &&
      getsockname(file, reinterpret_cast<sockaddr*>(&ours), &size) == 0 &&
      getnameinfo(reinterpret_cast<sockaddr*>(&ours), size, text.data(),
                  static_cast<socklen_t>(text.size()), nullptr, 0, NI_NUMERICHOST) == 0;
  close(file);
  return found ? text.data() : kLoopback;
}

}  // namespace

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::string own_address(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return kLoopback;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> kept(found, freeaddrinfo);
  return address_towards(*found);
}

void check_reachable(const std::vector<std::string>& addresses,
                     const std::vector<std::string>& hosts) {
  if (std::getenv("GLOO_SOCKET_IFNAME") != nullptr) return;
  for (size_t rank = 0; rank < addresses.size(); ++rank)
    for (size_t other = 0; other < addresses.size(); ++other)
      if (is_loopback(addresses[rank]) &&
          (hosts[rank] != hosts[other] || !is_loopback(addresses[other])))
        throw std::invalid_argument(
            "rank " + std::to_string(rank) + " on " + hosts[rank] +
            " would listen on " + addresses[rank] + ", which rank " +
            std::to_string(other) + " on " + hosts[other] +
            " cannot reach: MASTER_ADDR should be an address that others can reach, or "
            "GLOO_SOCKET_IFNAME name the interface, such as eth0");
}

}  // namespace lagwise::dist
