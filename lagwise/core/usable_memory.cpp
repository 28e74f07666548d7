#include "lagwise/core/usable_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace lagwise {
namespace {

std::optional<std::string> read_system_file(const std::string& name) {
  std::ifstream file(name);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// The number a file begins with; "max" is none.
std::optional<double> limit_in(const std::optional<std::string>& text) {
  uint64_t bytes = 0;
  if (!text) return std::nullopt;
  const auto [stopped, error] =
      std::from_chars(text->data(), text->data() + text->size(), bytes);
  if (error != std::errc() || stopped == text->data()) return std::nullopt;
  return static_cast<double>(bytes);
}

/// Our group in version 2, of a line "0::/user.slice/a"; "/" in most containers.
std::string own_group(const ReadSystemFile& read) {
  const std::string groups = read("/proc/self/cgroup").value_or("");
  const size_t begin = groups.starts_with("0::") ? 0 : groups.find("\n0::");
  if (begin == groups.npos) return "/";
  const size_t path = groups.find("::", begin) + 2;
  const std::string group = groups.substr(path, groups.find('\n', path) - path);
  return group.starts_with('/') ? group : "/";
}

}  // namespace

std::optional<double> container_memory(const ReadSystemFile& read) {
  const std::string root = "/sys/fs/cgroup";
  std::optional<double> least;
  const auto take = [&](const std::string& file) {
    const auto limit = limit_in(read(file));
    if (limit) least = std::min(*limit, least.value_or(*limit));
  };
  take(root + "/memory/memory.limit_in_bytes");  // version 1
  take(root + "/memory.max");
  // Each group is bound by those it is in.
  for (std::string group = own_group(read); group.size() > 1;
       group.resize(group.rfind('/')))
    take(root + group + "/memory.max");
  return least;
}

double usable_memory() {
  double bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                 static_cast<double>(sysconf(_SC_PAGE_SIZE));
  bytes = std::min(bytes, container_memory(read_system_file).value_or(bytes));
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, static_cast<double>(limit.rlim_cur));
  return bytes;
}

void keep_within_usable_memory() {
  rlimit limit = {};
  const auto bytes = static_cast<rlim_t>(usable_memory());
  if (bytes == 0 || getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur <= bytes)
    return;
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_DATA, &limit);  // refused: as it was
}

}  // namespace lagwise
