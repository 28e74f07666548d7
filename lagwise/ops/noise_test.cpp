#include "lagwise/ops/noise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lagwise::ops {
namespace {

using at::Tensor;

const Noise kNoise(7, 3, 11, 1);
constexpr NoiseAt kAt{.layer = 2, .head = 5, .feature = 9, .realisation = 4};

TEST(NoiseOp, IsTheNoiseOfItsCoordinates) {
  const NoiseRow row = kNoise.at(kAt);
  const Tensor uniform = noise("uniform", kNoise, kAt, -3, 10, at::kDouble);
  const Tensor normal = noise("normal", kNoise, kAt, -3, 10, at::kDouble);
  const Tensor sign = noise("sign", kNoise, kAt, -3, 10, at::kDouble);
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(uniform[i].item<double>(), row.uniform(i - 3));
    EXPECT_EQ(normal[i].item<double>(), row.normal(i - 3));
    EXPECT_EQ(sign[i].item<double>(), row.sign(i - 3));
  }
}

TEST(NoiseOp, GoesOnWhereAShorterRowEnds) {
  const Tensor whole = noise("normal", kNoise, kAt, 0, 33);
  const Tensor first = noise("normal", kNoise, kAt, 0, 10);
  const Tensor rest = noise("normal", kNoise, kAt, 10, 23);
  EXPECT_TRUE(whole.equal(at::cat({first, rest})));
  EXPECT_EQ(noise("normal", kNoise, kAt, 0, 0).sizes(), at::IntArrayRef({0}));
}

std::string refusal(const std::string& kind, int64_t count, at::ScalarType type) {
  try {
    noise(kind, kNoise, kAt, 0, count, type);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing was refused";
}

TEST(NoiseOp, SaysWhatIsWrong) {
  EXPECT_EQ(refusal("pink", 3, at::kFloat),
            "noise: expected kind uniform, normal or sign, got 'pink'");
  EXPECT_EQ(refusal("sign", -1, at::kFloat), "noise: expected count >= 0, got -1");
  EXPECT_EQ(refusal("sign", 3, at::kLong), "noise: expected Float or Double, got Long");
}

}  // namespace
}  // namespace lagwise::ops
