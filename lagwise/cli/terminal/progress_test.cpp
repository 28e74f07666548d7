#include "lagwise/cli/terminal/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace lagwise::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Progress, DrawsABarWithTheTimeLeft) {
  EXPECT_EQ(progress_line("data", 0.5, 65, "7 rows", false),
            "data  [############............]   50 %  7 rows  1:05 left");
  EXPECT_EQ(progress_line("data", 1, 65, "", false),
            "data  [########################]  100 %");
  EXPECT_EQ(progress_line("data", -1, 3, "7 rows", false), "data  7 rows  0:03");
  EXPECT_EQ(progress_line("data", 0, 3, "", false),
            "data  [........................]    0 %");
}

TEST(Progress, ColoursTheBarOnlyWhereItMay) {
  EXPECT_THAT(progress_line("x", 0.5, 1, "", true), HasSubstr("\033[32m####"));
  EXPECT_THAT(progress_line("x", 0.5, 1, "", false), Not(HasSubstr("\033")));
}

TEST(Progress, WritesTimesAsClocksDo) {
  EXPECT_EQ(clock_text(9), "0:09");
  EXPECT_EQ(clock_text(3723), "1:02:03");
  EXPECT_EQ(clock_text(-1), "0:00");
  EXPECT_EQ(clock_text(1e300), "1000000:00:00");
}

struct ProgressOn : ::testing::Test {
  std::ostringstream out;
  double time = 100;
  int lines(bool terminal) {
    Progress progress("work", out, terminal, true, [this] { return time; });
    for (int i = 0; i < 100; ++i, time += 0.25) progress.update(i / 100.0);
    progress.clear();
    const std::string text = out.str();
    return static_cast<int>(
        std::count(text.begin(), text.end(), terminal ? '\r' : '\n'));
  }
};

TEST_F(ProgressOn, ATerminalIsRedrawnAndCleared) {
  EXPECT_EQ(lines(true), 97);  // from the second 1 on, and once to clear
  EXPECT_TRUE(out.str().ends_with("\r\033[K"));
}

TEST_F(ProgressOn, AFileGetsALineNowAndThen) {
  EXPECT_EQ(lines(false), 2);
  EXPECT_THAT(out.str(), Not(HasSubstr("\033")));
  EXPECT_THAT(out.str(), Not(HasSubstr("\r")));
}

TEST_F(ProgressOn, ShortWorkSaysNothing) {
  Progress progress("work", out, true, true, [this] { return time; });
  progress.update(0.5);
  time += 0.5;
  progress.update(1);
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace lagwise::cli
