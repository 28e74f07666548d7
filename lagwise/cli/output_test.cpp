// What becomes of output that cannot be written, and of a reader that leaves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>

#include "lagwise/data/testing_files.h"

namespace lagwise::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Runs the program in a shell, after `before`; what it says on stderr.
std::string complaint(const std::string& words, int code,
                      const std::string& before = "") {
  const std::string command =
      "exec 3>&1; " + before + LAGWISE_PROGRAM " " + words + " 2>&3 3>&-";
  FILE* pipe = popen(command.c_str(), "r");
  std::string said;
  char part[256];
  while (std::fgets(part, sizeof(part), pipe)) said += part;
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), code) << words;
  return said;
}

TEST(Output, ThatCannotBeWrittenIsAFailure) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  for (const char* words :
       {"encodings", "encodings --markdown", "train --keys", "doctor", "doctor --json",
        "data", "--help", "--version", "encodings show alibi"}) {
    const std::string said = complaint(std::string(words) + " > /dev/full", 1);
    EXPECT_THAT(said, HasSubstr("lagwise: cannot write ")) << words;
    EXPECT_THAT(said, HasSubstr("No space left on device")) << words;
    EXPECT_EQ(said.find('\n'), said.size() - 1) << words;
  }
  EXPECT_EQ(complaint("encodings > /dev/null", 0), "");
}

TEST(Output, ToAFileAtItsLimitIsAFailure) {
  const lagwise::testing::TempFolder folder;
  EXPECT_THAT(
      complaint("encodings > " + folder / "table", 1, "ulimit -f 1; "),
      AllOf(HasSubstr("lagwise: cannot write "), HasSubstr("File too large\n")));
}

}  // namespace
}  // namespace lagwise::cli
