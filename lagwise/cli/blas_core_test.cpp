#include "lagwise/cli/blas_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "lagwise/cli/testing_child.h"

namespace lagwise::cli {
namespace {

using lagwise::testing::Child;
using ::testing::HasSubstr;
using ::testing::Not;

const CpuKind kXeon{
    "GenuineIntel",
    {"avx", "fma", "avx2", "avx512f", "avx512dq", "avx512bw", "avx512vl"}};
const CpuKind kDesktop{"GenuineIntel", {"avx", "fma", "avx2"}};
const CpuKind kEpyc{"AuthenticAMD", {"avx", "fma", "avx2"}};
const CpuKind kNewEpyc{"AuthenticAMD", kXeon.features};
const CpuKind kOld{"GenuineIntel", {"ssse3"}};

TEST(BlasCore, IsBetterWhereTheCpuHasMoreThanItsKernelsUse) {
  EXPECT_EQ(better_core("Prescott", kXeon), "SkylakeX");
  EXPECT_EQ(better_core("Haswell", kXeon), "SkylakeX");
  EXPECT_EQ(better_core("Prescott", kDesktop), "Haswell");
  EXPECT_EQ(better_core("Sandybridge", kDesktop), "Haswell");
  EXPECT_EQ(better_core("Prescott", kEpyc), "Zen");
  EXPECT_EQ(better_core("Barcelona", kNewEpyc), "Zen");
}

TEST(BlasCore, StaysWhereItFitsOrNobodyKnows) {
  EXPECT_EQ(better_core("SkylakeX", kXeon), "");
  EXPECT_EQ(better_core("Cooperlake", kXeon), "");
  EXPECT_EQ(better_core("Haswell", kDesktop), "");
  EXPECT_EQ(better_core("Zen", kEpyc), "");
  EXPECT_EQ(better_core("Zen", kNewEpyc), "");
  EXPECT_EQ(better_core("Haswell", kEpyc), "");
  EXPECT_EQ(better_core("Prescott", kOld), "");
  EXPECT_EQ(better_core("NEOVERSEN1", {"", {"asimd"}}), "");
  EXPECT_EQ(better_core("LionCove", kXeon), "");
  EXPECT_EQ(better_core("", kXeon), "");
  EXPECT_EQ(blas_warning("Zen", kEpyc), "");
  EXPECT_THAT(blas_warning("Prescott", kXeon),
              HasSubstr("set OPENBLAS_CORETYPE=SkylakeX"));
}

// What the test below starts anew: it would do so without end if nothing stopped it.
TEST(BlasCore, DISABLED_Restarts) {
  char program[] = "a name", filter[] = "--gtest_filter=BlasCore.DISABLED_Restarts",
       also[] = "--gtest_also_run_disabled_tests";
  char* words[] = {program, filter, also, nullptr};
  restart_with_better_core("Prescott", kXeon, words);
  const char* core = std::getenv("OPENBLAS_CORETYPE");
  std::printf("ran with %s as %d\n", core ? core : "none", getpid());
  std::fflush(stdout);
  _exit(core ? 7 : 8);
}

int run_itself(const char* environment, std::string& output) {
  const std::string command = std::string("env -u OPENBLAS_CORETYPE ") + environment +
                              " " +
                              std::filesystem::read_symlink("/proc/self/exe").string() +
                              " --gtest_filter=BlasCore.DISABLED_Restarts "
                              "--gtest_also_run_disabled_tests & echo started $!; "
                              "wait $!";
  FILE* pipe = popen(command.c_str(), "r");
  char part[256];
  while (std::fgets(part, sizeof(part), pipe)) output += part;
  return WEXITSTATUS(pclose(pipe));
}

TEST(BlasCore, RestartsTheProgramOnceInTheSameProcess) {
  std::string output;
  EXPECT_EQ(run_itself("A=B", output), 7);
  const size_t at = output.find("started ");
  ASSERT_NE(at, output.npos);
  const std::string id = output.substr(at + 8, output.find('\n', at) - at - 8);
  EXPECT_THAT(output, HasSubstr("ran with SkylakeX as " + id + "\n"));
}

TEST(BlasCore, IsTheUsersWhereHeSaidSo) {
  std::string output;
  EXPECT_EQ(run_itself("OPENBLAS_CORETYPE=Nehalem", output), 7);
  EXPECT_THAT(output, HasSubstr("ran with Nehalem"));
}

TEST(BlasCore, IsNamedByTheDoctor) {
  if (blas_core().empty()) GTEST_SKIP() << "torch was not loaded with OpenBLAS";
  const std::string better = better_core("Prescott", this_cpu());
  if (better.empty()) GTEST_SKIP() << "an old CPU, or none of x86";
  const auto doctor = [] {
    Child child({"doctor"});
    EXPECT_EQ(child.wait(), 0);
    return child.output();
  };
  setenv("OPENBLAS_CORETYPE", "Prescott", 1);
  EXPECT_THAT(doctor(), HasSubstr("set OPENBLAS_CORETYPE=" + better));
  unsetenv("OPENBLAS_CORETYPE");
  EXPECT_THAT(doctor(), Not(HasSubstr("set OPENBLAS_CORETYPE=")));
}

}  // namespace
}  // namespace lagwise::cli
