#include "lagwise/kernels/wave_row.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using namespace lagwise::testing;

TEST(WaveRow, EqualsItsDefinitionAtAnyPosition) {
  constexpr int64_t kCount = 37;
  std::vector<double> frequency(kCount), phase(kCount);
  for (size_t i = 0; i < kCount; ++i)
    frequency[i] = 0.5 * std::exp(-0.2 * double(i)), phase[i] = std::sin(double(i));
  for (const double position : {0.0, 1.0, 63.0, 12345.0, 1e7})
    for (const bool shifted : {false, true})
      for_each_simd_target([&] {
        std::vector<float> cosine(kCount, NAN), sine(kCount, NAN);
        wave_row(frequency.data(), shifted ? phase.data() : nullptr, kCount, position,
                 cosine.data(), sine.data());
        for (size_t i = 0; i < kCount; ++i) {
          const long double turns = static_cast<long double>(frequency[i]) * position +
                                    (shifted ? phase[i] : 0.0);
          const auto part = static_cast<double>(turns - std::floor(turns));
          const double angle = 2 * std::numbers::pi * part;
          EXPECT_NEAR(cosine[i], std::cos(angle), 5e-7) << i << " at " << position;
          EXPECT_NEAR(sine[i], std::sin(angle), 5e-7) << i << " at " << position;
        }
      });
}

}  // namespace
}  // namespace lagwise::kernels
