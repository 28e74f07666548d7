#include "bench/crossover.h"

#include <gtest/gtest.h>

#include "bench/crossover_text.h"

namespace lagwise::bench {
namespace {

/// `factor` n^power at 128, 256, ... 2048.
Curve made_curve(const std::string& label, double factor, int power,
                 size_t points = 5) {
  Curve curve = {label, {}, ""};
  for (int64_t n = 128; curve.points.size() < points; n *= 2) {
    double ms = factor;
    for (int i = 0; i < power; ++i) ms *= double(n);
    curve.points.push_back({n, ms, n});
  }
  return curve;
}

TEST(Crossing, IsExactForPowersOfN) {
  // 1e-5 n^2 = 3e-3 n at n = 300, between two measured lengths.
  const Crossing crossing =
      find_crossing(made_curve("exact", 1e-5, 2), made_curve("linear", 3e-3, 1));
  EXPECT_EQ(crossing.where, Crossing::Where::at);
  EXPECT_NEAR(crossing.n, 300, 1e-6);
  EXPECT_EQ(describe(crossing), "N = 300");
}

TEST(Crossing, MayLieBelowTheFirstLength) {
  const Crossing crossing =
      find_crossing(made_curve("exact", 1, 2), made_curve("linear", 1, 1));
  EXPECT_EQ(describe(crossing), "below 128");
}

TEST(Crossing, MayLieBeyondTheLastCommonLength) {
  const Crossing crossing =
      find_crossing(made_curve("exact", 1e-9, 2, 3), made_curve("linear", 1, 1));
  EXPECT_EQ(describe(crossing), "beyond 512");
}

Panel made_panel() {
  Panel panel = {"forward", 64, made_curve("exact", 1e-5, 2, 4), {}};
  panel.exact.stopped = "stopped before N = 2048: a call would take over 40 ms";
  panel.linear = {made_curve("linear, none", 2e-3, 1),
                  made_curve("linear, elu1", 3e-3, 1)};
  return panel;
}

TEST(CrossoverTable, SaysWhereTheyCrossAndWhyExactStops) {
  const std::string table = crossover_table({made_panel()});
  EXPECT_NE(table.find("N = 200 (none), N = 300 (elu1)"), std::string::npos) << table;
  EXPECT_NE(table.find("exact stopped before N = 2048"), std::string::npos) << table;
}

TEST(CrossoverChart, DrawsBothCurves) {
  const std::string chart = crossover_chart(made_panel());
  EXPECT_NE(chart.find('o'), std::string::npos);
  EXPECT_NE(chart.find("x  "), std::string::npos);
  EXPECT_NE(chart.find("2048"), std::string::npos) << chart;
}

TEST(CrossoverHtml, ShowsEveryCurveAndWhereTheyCross) {
  const std::string html = crossover_html({made_panel()}, "a < b & c");
  EXPECT_NE(html.find("linear, elu1"), std::string::npos);
  EXPECT_NE(html.find("N = 200 (none), N = 300 (elu1)"), std::string::npos);
  EXPECT_NE(html.find("a \\u003c b & c"), std::string::npos);
}

}  // namespace
}  // namespace lagwise::bench
