#include "lagwise/core/usable_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <new>

namespace lagwise {
namespace {

std::optional<double> limit_of(const std::map<std::string, std::string>& files) {
  return container_memory([&](const std::string& name) -> std::optional<std::string> {
    const auto found = files.find(name);
    if (found == files.end()) return std::nullopt;
    return found->second;
  });
}

TEST(UsableMemory, IsThatOfTheContainer) {
  EXPECT_EQ(limit_of({}), std::nullopt);
  EXPECT_EQ(limit_of({{"/sys/fs/cgroup/memory.max", "max\n"}}), std::nullopt);
  EXPECT_EQ(limit_of({{"/sys/fs/cgroup/memory.max", "4294967296\n"},
                      {"/proc/self/cgroup", "0::/\n"}}),
            4294967296.0);
  EXPECT_EQ(limit_of({{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n"},
                      {"/proc/self/cgroup", "5:memory:/x\n1:name=y:/\n"}}),
            1e6);
}

TEST(UsableMemory, IsBoundByEveryGroupAround) {
  std::map<std::string, std::string> files = {
      {"/proc/self/cgroup", "1:name=systemd:/\n0::/user.slice/job\n"},
      {"/sys/fs/cgroup/user.slice/memory.max", "3000\n"},
      {"/sys/fs/cgroup/user.slice/job/memory.max", "5000\n"}};
  EXPECT_EQ(limit_of(files), 3000.0);
  files["/sys/fs/cgroup/user.slice/job/memory.max"] = "2000\n";
  EXPECT_EQ(limit_of(files), 2000.0);
  files["/proc/self/cgroup"] = "0::";  // cut short: no group is known
  EXPECT_EQ(limit_of(files), std::nullopt);
  files["/proc/self/cgroup"] = "0::job\n";  // no path
  EXPECT_EQ(limit_of(files), std::nullopt);
}

// Sanitizers take terabytes of addresses for themselves, and answer allocations.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(UsableMemory, IsNoMoreThanALimitOfTheShell) {
  const double before = usable_memory();
  EXPECT_GT(before, 1e8);
  rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &old), 0);
  const rlimit less{static_cast<rlim_t>(before / 2), old.rlim_max};
  if (setrlimit(RLIMIT_AS, &less) != 0) GTEST_SKIP() << "the limit cannot be set";
  EXPECT_NEAR(usable_memory(), before / 2, 1);
  setrlimit(RLIMIT_AS, &old);
}

/// What the system would grant, piece by piece, fails where memory ends. In a process of
/// its own: the limit stays.
TEST(UsableMemory, EndsWhereTheMachineEnds) {
  const pid_t child = fork();
  if (child == 0) {
    keep_within_usable_memory();
    const auto piece = static_cast<size_t>(usable_memory() / 4);
    int granted = 0;  // and never written to
    for (; granted < 8; ++granted)
      if (::operator new(piece, std::nothrow) == nullptr) break;
    _exit(granted);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_GE(WEXITSTATUS(status), 1);
  EXPECT_LE(WEXITSTATUS(status), 4);
}
#endif

}  // namespace
}  // namespace lagwise
