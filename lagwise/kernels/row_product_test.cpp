#include "lagwise/kernels/row_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using namespace lagwise::testing;

std::vector<float> wave(int64_t count, double step) {
  std::vector<float> x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(std::sin(step * double(i) + 0.2));
  return x;
}

TEST(RowProduct, EqualsItsDefinition) {
  for (const int64_t n : {0, 1, 2, 3})
    for (const int64_t f : {0, 1, 7, 33})
      for (const int64_t r : {1, 5, 16, 67, 130})
        for (const bool add : {false, true}) {
          const std::vector<float> x = wave(n * f, 0.7), b = wave(f * r, 1.3);
          for_each_simd_target([&] {
            std::vector<float> y(static_cast<size_t>(n * r), add ? 2.0f : NAN);
            row_product({x.data(), n, f, f}, {b.data(), f, r, r}, add,
                        {y.data(), n, r, r});
            for (int64_t i = 0; i < n; ++i)
              for (int64_t j = 0; j < r; ++j) {
                double want = add ? 2 : 0;
                for (int64_t k = 0; k < f; ++k)
                  want += double(x[static_cast<size_t>(i * f + k)]) *
                          double(b[static_cast<size_t>(k * r + j)]);
                EXPECT_NEAR(y[static_cast<size_t>(i * r + j)], want, 1e-5);
              }
          });
        }
}

TEST(RowProduct, HasTheSameBitsAloneAndBesideOthers) {
  const int64_t n = 5, f = 33, r = 67;
  const std::vector<float> x = wave(n * f, 0.7), b = wave(f * r, 1.3);
  for_each_simd_target([&] {
    std::vector<float> together(static_cast<size_t>(n * r)), alone = together;
    row_product({x.data(), n, f, f}, {b.data(), f, r, r}, false,
                {together.data(), n, r, r});
    for (int64_t i = 0; i < n; ++i)
      row_product({x.data() + i * f, 1, f, f}, {b.data(), f, r, r}, false,
                  {alone.data() + i * r, 1, r, r});
    EXPECT_EQ(alone, together);
  });
}

}  // namespace
}  // namespace lagwise::kernels
