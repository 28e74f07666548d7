#include "lagwise/data/sources/listops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/sources/listops_expression.h"
#include "lagwise/data/sources/lra_tables.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using namespace lagwise::testing;

TEST(Listops, LabelsAndLengthsAreTrue) {
  ListopsGenerator generator(1);
  for (int i = 0; i < 50; ++i) {
    const ListopsRow row = generator.next();
    const std::vector<int32_t> symbols = listops_symbols(row.expression);
    EXPECT_EQ(listops_value(symbols), row.label);
    EXPECT_EQ(static_cast<int>(symbols.size()), row.length);
    EXPECT_GT(row.length, 500);
    EXPECT_LT(row.length, 2000);
  }
}

// Written once by this generator: it must never change.
TEST(Listops, GivesTheSameBytesEverywhere) {
  const TempFolder folder;
  ListopsGenerator generator(1);
  write_listops(folder / "a.tsv", generator, 20);
  EXPECT_EQ(hash_text(fnv1a(bytes_of(contents(folder / "a.tsv")))), "558bebba90923bf3");
  int64_t rows =
      each_listops_row(folder / "a.tsv", [](std::string_view text, int label) {
        EXPECT_EQ(listops_value(listops_symbols(text)), label);
      });
  EXPECT_EQ(rows, 20);
}

TEST(Listops, SaysEachRowOnce) {
  ListopsRules tiny{2, 2, 3, 5};  // 4 symbols: an operator and two digits
  ListopsGenerator generator(1, tiny);
  std::vector<std::string> rows;
  for (int i = 0; i < 400; ++i) rows.push_back(generator.next().expression);
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(std::unique(rows.begin(), rows.end()), rows.end());
  EXPECT_EQ(rows[0], "( ( ( [MAX 0 ) 0 ) ] )");
  EXPECT_THROW(generator.next(), std::invalid_argument);  // there are only 400
}

TEST(Listops, RefusesImpossibleRules) {
  EXPECT_THROW(ListopsGenerator(1, {10, 1, 500, 2000}), std::invalid_argument);
  EXPECT_THROW(ListopsGenerator(1, {10, 10, 500, 501}), std::invalid_argument);
}

struct Statistics {
  std::vector<double> lengths;
  std::array<double, 10> labels{};
  std::array<double, 4> operators{};
  std::vector<double> operator_counts;
  double rows = 0, trees = 0, arguments = 0;
  int shallowest = 100, deepest = 0;
};

void count(const ListopsRow& row, Statistics& s) {
  double operators = 0;
  int depth = 0, deepest = 0;
  for (const int32_t symbol : listops_symbols(row.expression)) {
    if (symbol == kListopsClose) --depth;
    if (symbol < kListopsOperator || symbol == kListopsClose) continue;
    ++operators;
    ++s.operators[static_cast<size_t>(symbol - kListopsOperator)];
    deepest = std::max(deepest, ++depth);
  }
  s.shallowest = std::min(s.shallowest, deepest);
  s.deepest = std::max(s.deepest, deepest);
  s.operator_counts.push_back(operators);
  s.lengths.push_back(row.length);
  // Every node but the root is an argument; an operator counts two symbols.
  s.arguments += row.length - operators - 1;
  ++s.labels[static_cast<size_t>(row.label)];
  ++s.rows;
}

double at_share(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

// The share of the values below x has a standard deviation of sqrt(p (1 - p) / n), and
// so a quantile one of that over the density there.
void expect_quantile(const Statistics& s, double share, double want, double density) {
  EXPECT_NEAR(at_share(s.lengths, share), want,
              5 * std::sqrt(share * (1 - share) / s.rows) / density + 1)
      << share;
}

// The figures of 10,000 rows of the reference generator, with gates of five sigma; the
// densities are slopes between its quantiles 501 541 704 952 1314 1802 1999.
void expect_reference(const Statistics& s) {
  const auto within = [](double share, double n) {
    return 5 * std::sqrt(share * (1 - share) / n);
  };
  EXPECT_NEAR(s.rows / s.trees, 0.0826, within(0.0826, s.trees));
  const double sd = 410;  // of the length
  const double sum = std::accumulate(s.lengths.begin(), s.lengths.end(), 0.0);
  EXPECT_NEAR(sum / s.rows, 1038, 5 * sd / std::sqrt(s.rows));
  expect_quantile(s, 0.05, 541, 0.05 / 40);
  expect_quantile(s, 0.25, 704, 0.20 / 163);
  expect_quantile(s, 0.50, 952, 0.25 / 362);
  expect_quantile(s, 0.75, 1314, 0.20 / 488);
  expect_quantile(s, 0.95, 1802, 0.05 / 197);
  EXPECT_EQ(s.shallowest, 9);
  EXPECT_EQ(s.deepest, 9);
  EXPECT_NEAR(at_share(s.operator_counts, 0.5), 135,
              5 * 0.5 / std::sqrt(s.rows) / (0.25 / 362 * 952 / 135));
  const double operators =
      s.operators[0] + s.operators[1] + s.operators[2] + s.operators[3];
  EXPECT_NEAR(s.arguments / operators, 6.03, 5 * 2.58 / std::sqrt(operators));
  for (const double one : s.operators)
    EXPECT_NEAR(one / operators, 0.25, within(0.25, operators));
  const double labels[] = {16.9, 9.2, 7.7, 8.0, 8.6, 8.9, 7.3, 7.1, 8.7, 17.6};
  for (size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(s.labels[i] / s.rows, labels[i] / 100, within(labels[i] / 100, s.rows))
        << i;
}

TEST(Listops, HasTheStatisticsOfTheReference) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr int kRows = 100;  // it is slow there
#else
  constexpr int kRows = 1000;
#endif
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    ListopsGenerator generator(seed);
    Statistics statistics;
    for (int i = 0; i < kRows; ++i) count(generator.next(), statistics);
    statistics.trees = static_cast<double>(generator.trees());
    expect_reference(statistics);
  }
}

}  // namespace
}  // namespace lagwise::data
