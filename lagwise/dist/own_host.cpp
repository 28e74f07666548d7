#include "lagwise/dist/own_host.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "lagwise/dist/own_address.h"

namespace lagwise::dist {
namespace {

/// IPv4 and IPv6 alone; empty for others.
std::string address_text(const sockaddr* address) {
  if (address == nullptr) return "";
  const bool four = address->sa_family == AF_INET, six = address->sa_family == AF_INET6;
  if (!four && !six) return "";
  std::array<char, NI_MAXHOST> text = {};
  const auto size =
      static_cast<socklen_t>(four ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  const int failed =
      getnameinfo(address, size, text.data(), static_cast<socklen_t>(text.size()),
                  nullptr, 0, NI_NUMERICHOST);
  return failed != 0 ? "" : text.data();
}

std::vector<std::string> addresses_of(const std::string& name) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> kept(found, freeaddrinfo);
  std::vector<std::string> all;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next)
    if (const std::string text = address_text(one->ai_addr); !text.empty())
      all.push_back(text);
  return all;
}

std::vector<OwnHost::Interface> interfaces_here() {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> kept(found, freeifaddrs);
  std::vector<OwnHost::Interface> all;
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    const std::string text = address_text(one->ifa_addr);
    if (!text.empty() && !is_loopback(text) && (one->ifa_flags & IFF_UP) != 0)
      all.push_back({one->ifa_name, text});
  }
  return all;
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : ", ") + word;
  return line;
}

/// Each once, in the order they were found in.
std::vector<std::string> names_of(const std::vector<OwnHost::Interface>& interfaces) {
  std::vector<std::string> names;
  for (const auto& [name, address] : interfaces)
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  return names;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name = {};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

OwnHost own_host() {
  const char* const chosen = std::getenv("GLOO_SOCKET_IFNAME");
  const std::string name = host_name();
  return {name, addresses_of(name), interfaces_here(), chosen == nullptr ? "" : chosen};
}

Reachable reachable(const OwnHost& host) {
  if (host.interfaces.empty())
    return {false,
            "no interface but loopback is up: other hosts cannot reach this one"};
  const std::vector<std::string> names = names_of(host.interfaces);
  if (!host.chosen.empty()) {
    const auto found = std::find_if(
        host.interfaces.begin(), host.interfaces.end(),
        [&](const OwnHost::Interface& one) { return one.name == host.chosen; });
    if (found == host.interfaces.end())
      return {false, "GLOO_SOCKET_IFNAME: expected an interface that is up (" +
                         joined(names) + "), got '" + host.chosen + "'"};
    return {true, "others reach this one by " + host.chosen + ", " + found->address +
                      ", as GLOO_SOCKET_IFNAME says"};
  }
  const auto& [interface, address] = host.interfaces.front();
  const std::string remedy = ": where it is the first of a job's hosts, write " +
                             address +
                             " for its name, or set GLOO_SOCKET_IFNAME=" + interface;
  if (host.addresses.empty())
    return {false, "the name of this host, " + host.name +
                       ", leads to no address here" + remedy};
  if (std::all_of(host.addresses.begin(), host.addresses.end(), is_loopback))
    return {false, "the name of this host, " + host.name + ", leads to " +
                       host.addresses.front() +
                       " here (/etc/hosts), which others cannot reach" + remedy};
  return {true, "the name of this host, " + host.name + ", leads to " +
                    joined(host.addresses)};
}

}  // namespace lagwise::dist
