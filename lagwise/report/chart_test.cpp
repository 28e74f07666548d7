#include "lagwise/report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lagwise::report {
namespace {

using ::testing::HasSubstr;

Chart line() {
  Chart chart{"a < b", {"lag"}, {"score"}, {}};
  chart.series.push_back({"up", {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}});
  return chart;
}

TEST(TerminalChart, DrawsALineFromCornerToCorner) {
  const std::string text = terminal_chart(line(), 5, 5);
  EXPECT_THAT(text, HasSubstr("         4 |     a\n"));
  EXPECT_THAT(text, HasSubstr("         0 | a    \n"));
  EXPECT_THAT(text, HasSubstr("a up"));
}

TEST(TerminalChart, MarksWhereCurvesMeetAndATrainingLength) {
  Chart chart = line();
  chart.series.push_back({"down", {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}});
  chart.mark = 3;
  chart.mark_label = "trained";
  const std::string text = terminal_chart(chart, 5, 5);
  EXPECT_THAT(text, HasSubstr("|   *| \n"));
  EXPECT_THAT(text, HasSubstr("| trained"));
}

TEST(TerminalChart, LivesWithFlatEmptyAndInfiniteCurves) {
  EXPECT_THAT(terminal_chart({"flat", {"x"}, {"y"}, {{"c", {1, 2}, {3, 3}}}}),
              HasSubstr("a"));
  EXPECT_THAT(terminal_chart({"none", {"x"}, {"y"}, {}}), HasSubstr("none"));
  EXPECT_THAT(terminal_chart(
                  {"inf", {"x", true}, {"y", true}, {{"c", {1, 10}, {0, INFINITY}}}}),
              HasSubstr("inf"));
}

TEST(ShortNumber, KeepsFourDigits) {
  EXPECT_EQ(short_number(0.012345), "0.01235");
  EXPECT_EQ(short_number(-1e-17), "0");
  EXPECT_EQ(short_number(1024), "1024");
}

}  // namespace
}  // namespace lagwise::report
