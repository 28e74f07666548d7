#include "lagwise/encodings/rope_frequencies.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace lagwise {
namespace {

double f(int64_t d, int64_t j, const RopeScaling& scaling, double base = 10000) {
  return rope_frequencies(d, base, scaling).f[size_t(j)];
}

TEST(RopeFrequencies, FallGeometrically) {
  for (int64_t j = 0; j < 8; ++j)
    EXPECT_DOUBLE_EQ(f(16, j, {}), std::pow(10000., -double(j) / 8));
  EXPECT_EQ(rope_frequencies(0, 10000, {}).f.size(), 0u);
}

TEST(RopeFrequencies, AreDividedByLinearScaling) {
  EXPECT_DOUBLE_EQ(f(16, 3, {.kind = "linear", .factor = 4}), f(16, 3, {}) / 4);
}

TEST(RopeFrequencies, KeepTheFastestAndDivideTheSlowestWithNtk) {
  const RopeScaling ntk{.kind = "ntk", .factor = 4};
  EXPECT_DOUBLE_EQ(f(16, 0, ntk), 1);
  EXPECT_NEAR(f(16, 7, ntk), f(16, 7, {}) / 4, 1e-15);  // the point of the exponent
  EXPECT_DOUBLE_EQ(f(2, 0, ntk), 1);
}

TEST(RopeFrequencies, StayUntilTheTrainedLengthWithDynamicNtk) {
  RopeScaling dynamic{
      .kind = "dynamic_ntk", .factor = 4, .original = 2048, .length = 100};
  EXPECT_DOUBLE_EQ(f(16, 5, dynamic), f(16, 5, {}));
  dynamic.length = 5000;
  const double stretch = 4 * 5000. / 2048 - 3;
  EXPECT_NEAR(f(16, 7, dynamic), f(16, 7, {}) / stretch, 1e-15);
}

TEST(RopeFrequencies, BlendByWavelengthWithLlama3) {
  const RopeScaling llama{.kind = "llama3", .factor = 8, .original = 8192};
  for (int64_t j = 0; j < 64; ++j) {
    const double plain = f(128, j, {}, 500000);
    const double wavelength = 2 * std::numbers::pi / plain;
    const double got = f(128, j, llama, 500000);
    if (wavelength < 8192 / 4.) {
      EXPECT_DOUBLE_EQ(got, plain);
    } else if (wavelength > 8192) {
      EXPECT_DOUBLE_EQ(got, plain / 8);
    } else {
      const double smooth = (8192 / wavelength - 1) / 3;
      EXPECT_NEAR(got, (1 - smooth) * plain / 8 + smooth * plain, 1e-15);
    }
  }
}

TEST(RopeFrequencies, InterpolateSlowPlanesAloneWithYarn) {
  const RopeScaling yarn{.kind = "yarn", .factor = 4, .original = 2048};
  const RopeFrequencies r = rope_frequencies(64, 10000, yarn);
  EXPECT_DOUBLE_EQ(r.attention, 0.1 * std::log(4.) + 1);
  EXPECT_DOUBLE_EQ(r.f[0], 1);                   // turns 326 times
  EXPECT_DOUBLE_EQ(r.f[31], f(64, 31, {}) / 4);  // turns less than once
  // dim(32) = 8.05, dim(1) = 20.1: plane 14 stands at (14 - 8) / (21 - 8) of the ramp.
  EXPECT_NEAR(r.f[14], f(64, 14, {}) * (6. / 13 / 4 + 7. / 13), 1e-15);
  EXPECT_EQ(rope_frequencies(64, 10000, {.kind = "yarn"}).attention, 1);
}

}  // namespace
}  // namespace lagwise
