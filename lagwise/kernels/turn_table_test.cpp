#include "lagwise/kernels/turn_table.h"

#include <cmath>
#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using testing::expect_close;
using testing::Mat;

Mat<double> positions(const std::vector<std::vector<double>>& rows) {
  Mat<double> p(int64_t(rows.size()), int64_t(rows[0].size()));
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t a = 0; a < rows[i].size(); ++a) p(int64_t(i), int64_t(a)) = rows[i][a];
  return p;
}

/// The definition with a longer significand: 64 bits against the double's 53. The
/// product is exact there, since frequencies have 40 bits and positions 24.
Mat<double> by_definition(const Mat<double>& p, const std::vector<double>& frequency,
                          double scale) {
  const auto planes = int64_t(frequency.size());
  Mat<double> table(p.rows(), 2 * planes);
  for (int64_t i = 0; i < p.rows(); ++i) {
    for (int64_t j = 0; j < planes; ++j) {
      const int64_t axis = j / (planes / p.cols());
      const long double angle =
          static_cast<long double>(p(i, axis)) * frequency[size_t(j)];
      table(i, j) = double(scale * std::cos(angle));
      table(i, planes + j) = double(scale * std::sin(angle));
    }
  }
  return table;
}

template <class T>
Mat<T> run(const Mat<double>& p, const std::vector<double>& frequency, double scale) {
  const auto planes = int64_t(frequency.size());
  Mat<T> table(p.rows(), 2 * planes);
  std::vector<double> scratch(size_t(turn_table_scratch(planes)));
  turn_table<T>(p.view(), frequency.data(), scale, table.view(), scratch.data());
  return table;
}

double with_40_bits(double x) { return std::ldexp(std::round(std::ldexp(x, 38)), -38); }

const std::vector<double> kFrequencies = {1.0,
                                          with_40_bits(0.7),
                                          with_40_bits(0.1),
                                          with_40_bits(0.031),
                                          with_40_bits(1e-3),
                                          with_40_bits(2.7)};

TEST(TurnTable, HoldsToPositionsOfTenMillion) {
  const auto p = positions({{0},
                            {1},
                            {63},
                            {64},
                            {65},
                            {300},
                            {1e6},
                            {1e6 + 1},
                            {1e7},
                            {1e7 + 63},
                            {-1},
                            {-64},
                            {-65},
                            {-1e7},
                            {0.5},
                            {1e6 + 0.25}});
  expect_close(run<double>(p, kFrequencies, 1.5), by_definition(p, kFrequencies, 1.5),
               0, 3e-15);
  expect_close(run<float>(p, kFrequencies, 1.5), by_definition(p, kFrequencies, 1.5), 0,
               1.3e-7);
}

TEST(TurnTable, DealsPlanesOutToTheAxesOfAGrid) {
  const auto two = positions({{0, 5}, {1, 100}, {2, -3}});
  expect_close(run<double>(two, kFrequencies, 1), by_definition(two, kFrequencies, 1),
               0, 3e-15);
  const auto three = positions({{0, 5, 64}, {1, 100, 1e6}, {1, 64, 64.5}});
  expect_close(run<double>(three, kFrequencies, 1),
               by_definition(three, kFrequencies, 1), 0, 3e-15);
}

TEST(TurnTable, IsAFunctionOfThePositionAlone) {
  std::vector<std::vector<double>> rows;
  for (int i = 0; i < 300; ++i) rows.push_back({1000.0 + i});
  const auto all = run<double>(positions(rows), kFrequencies, 1);
  for (int64_t i = 0; i < 300; ++i) {
    const auto one = run<double>(positions({rows[size_t(i)]}), kFrequencies, 1);
    expect_close(one, all.view().slice(i, i + 1), 0);
  }
}

TEST(TurnTable, TakesNoRowsAndNoPlanes) {
  EXPECT_EQ(run<float>(Mat<double>(0, 1), kFrequencies, 1).rows(), 0);
  EXPECT_EQ(run<float>(positions({{1}, {2}}), {}, 1).cols(), 0);
}

}  // namespace
}  // namespace lagwise::kernels
