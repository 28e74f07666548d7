#include "lagwise/kernels/bf16_numbers.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::for_each_simd_target;

float widened(uint32_t half) { return std::bit_cast<float>(half << 16); }

/// By comparing with the two neighbours among the bf16 numbers.
uint16_t nearest(float x) {
  if (std::isnan(x)) return 0x7fc0;
  const uint32_t below = std::bit_cast<uint32_t>(x) >> 16;  // towards zero
  if (widened(below) == x) return static_cast<uint16_t>(below);
  const double down = std::abs(double{x} - double{widened(below)});
  // Beyond the largest number the next step up is infinity, as far as a step would be.
  const double up_value = std::isinf(widened(below + 1))
                              ? std::copysign(std::ldexp(1.0, 128), x)
                              : double{widened(below + 1)};
  const double up = std::abs(up_value - double{x});
  const bool takes_up = up < down || (up == down && below % 2 == 1);
  return static_cast<uint16_t>(below + (takes_up ? 1 : 0));
}

std::vector<float> numbers() {
  std::vector<float> x = {0.0f,
                          -0.0f,
                          1.0f,
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(),
                          std::bit_cast<float>(0x7f800001u),  // a NaN of few bits
                          std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::lowest(),
                          std::numeric_limits<float>::denorm_min()};
  for (uint32_t i = 0; i < 3000; ++i) {  // anywhere, and at ties of both kinds
    x.push_back(std::bit_cast<float>(i * 2654435761u % 0x7f000000u | (i % 2) << 31));
    x.push_back(std::bit_cast<float>((0x3f80u + i) << 16 | 0x8000u));
  }
  return x;
}

TEST(Bf16Numbers, AreTheNearest) {
  const std::vector<float> x = numbers();
  const auto count = static_cast<int64_t>(x.size());
  for_each_simd_target([&] {
    std::vector<uint16_t> y(x.size() + 1, 0x1234);
    round_to_bf16(x.data(), count, y.data());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], nearest(x[i])) << x[i];
    EXPECT_EQ(y.back(), 0x1234);
  });
}

TEST(Bf16Numbers, ComeBackExactly) {
  std::vector<uint16_t> x;
  for (uint32_t i = 0; i < 0x10000; i += 7) x.push_back(static_cast<uint16_t>(i));
  for_each_simd_target([&] {
    std::vector<float> y(x.size() + 1, -7.0f);
    widen_bf16(x.data(), static_cast<int64_t>(x.size()), y.data());
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(std::bit_cast<uint32_t>(y[i]), uint32_t{x[i]} << 16);
    EXPECT_EQ(y.back(), -7.0f);
  });
}

TEST(Bf16Numbers, SumOverRows) {
  for (const int64_t rows : {0, 1, 3, 4, 11})
    for (const int64_t cols : {1, 7, 16, 45}) {
      std::vector<uint16_t> x(static_cast<size_t>(rows * (cols + 2)));
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<uint16_t>(0x3f80 + (i * 37) % 200);
      const MatView<const uint16_t> view{x.data(), rows, cols, cols + 2, 1};
      for (const bool add : {false, true})
        for_each_simd_target([&] {
          std::vector<float> to(static_cast<size_t>(cols), 2.5f);
          sum_bf16_rows(view, add, to.data());
          for (int64_t j = 0; j < cols; ++j) {
            double want = add ? 2.5 : 0;
            for (int64_t i = 0; i < rows; ++i) want += double{widened(view(i, j))};
            EXPECT_NEAR(to[static_cast<size_t>(j)], want, 1e-6 * (1 + want));
          }
        });
    }
}

}  // namespace
}  // namespace lagwise::kernels
