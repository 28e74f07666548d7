#include "lagwise/kernels/add_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::for_each_simd_target;

/// y of [rows, cols] in rows of cols + 1 numbers, of which the last stays what it is.
template <class T>
void expect_sums(int64_t rows, int64_t cols, bool has_x, bool has_bias) {
  const auto count = static_cast<size_t>(rows * (cols + 1));
  std::vector<T> x(count), before(count), bias(static_cast<size_t>(cols));
  for (size_t i = 0; i < count; ++i)
    x[i] = static_cast<T>(i % 7) - T(2.5), before[i] = static_cast<T>(i % 11) / 3;
  for (size_t j = 0; j < bias.size(); ++j) bias[j] = static_cast<T>(j) / 7;
  for_each_simd_target([&] {
    std::vector<T> y = before;
    add_rows<T>({has_x ? x.data() : nullptr, rows, cols, cols + 1, 1},
                has_bias ? bias.data() : nullptr, {y.data(), rows, cols, cols + 1, 1});
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j <= cols; ++j) {
        const auto at = static_cast<size_t>(i * (cols + 1) + j);
        T added = 0;
        if (has_x && j < cols) added += x[at];
        if (has_bias && j < cols) added += bias[static_cast<size_t>(j)];
        EXPECT_EQ(y[at], before[at] + added) << i << " " << j;
      }
  });
}

TEST(AddRows, EqualsItsDefinition) {
  for (const int64_t rows : {0, 1, 3})
    for (const int64_t cols : {0, 1, 8, 16, 45})
      for (const bool has_x : {false, true})
        for (const bool has_bias : {false, true}) {
          expect_sums<float>(rows, cols, has_x, has_bias);
          expect_sums<double>(rows, cols, has_x, has_bias);
        }
}

}  // namespace
}  // namespace lagwise::kernels
