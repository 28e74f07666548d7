#include "lagwise/encodings/sine_spe_noise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

namespace lagwise {
namespace {

using at::Tensor;
using Shape = SineSpeNoise::Shape;

constexpr Shape kShape{.heads = 3, .dim = 5, .sines = 2, .width = 16, .gated = true};

// Every number is named by its coordinates: a wider or longer tensor only adds some.
TEST(SineSpeNoise, DependsOnCoordinatesAlone) {
  const Draw draw{.seed = 4, .step = 7};
  SineSpeNoise noise(kShape);
  const Tensor z = noise.code(draw, 0, at::kDouble);
  ASSERT_EQ(z.sizes(), at::IntArrayRef({3, 5, 4, 16}));
  SineSpeNoise larger({.heads = 4, .dim = 9, .sines = 2, .width = 40, .gated = true});
  EXPECT_TRUE(larger.code(draw, 0, at::kDouble)
                  .slice(0, 0, 3)
                  .slice(1, 0, 5)
                  .slice(3, 0, 16)
                  .equal(z));
  const double named =
      draw.noise(streams::kSineSpe).at({.head = 2, .feature = 3 * 4 + 1}).normal(15);
  EXPECT_EQ(z[2][3][1][15].item<double>(), named);
  EXPECT_TRUE(noise.code(draw, 0, at::kFloat).equal(z.to(at::kFloat)));
}

TEST(SineSpeNoise, DrawsGatesForEveryLayer) {
  SineSpeNoise noise(kShape);
  const Tensor first = noise.gate({}, 0, at::kDouble);
  EXPECT_EQ(first.sizes(), at::IntArrayRef({3, 5, 16}));
  EXPECT_FALSE(noise.gate({}, 1, at::kDouble).equal(first));
  EXPECT_TRUE(noise.gate({}, 0, at::kDouble).equal(first));
  EXPECT_FALSE(noise.gate({.step = 1}, 0, at::kDouble).equal(first));
}

TEST(SineSpeNoise, FoldsEvenly) {
  for (const int64_t width : {4, 16, 25, 30}) {
    Shape shape = kShape;
    shape.width = width;
    SineSpeNoise noise(shape);
    const Tensor fold = noise.fold({}, 0);
    const int64_t features = 25, least = features / width;
    ASSERT_EQ(fold.sizes(), at::IntArrayRef({3, features}));
    for (int64_t h = 0; h < 3; ++h) {
      std::map<int64_t, int64_t> load;
      for (int64_t f = 0; f < features; ++f) ++load[fold[h][f].abs().item<int64_t>()];
      for (const auto& [bin, count] : load) {
        EXPECT_TRUE(1 <= bin && bin <= width) << bin;
        EXPECT_TRUE(count == least || count == least + 1) << count;
      }
    }
    EXPECT_FALSE(fold[0].equal(fold[1]));
  }
}

TEST(SineSpeNoise, SharesAFoldBetweenLayersButForTheSignsOfGates) {
  Shape shape = kShape;
  shape.dim = 40;
  SineSpeNoise noise(shape);
  const Tensor a = noise.fold({}, 0), b = noise.fold({}, 1);
  EXPECT_TRUE(a.abs().equal(b.abs()));
  const Tensor of_gates = at::arange(200, at::kLong).remainder(5).eq(4);
  const Tensor differ = a.ne(b);
  EXPECT_FALSE(differ.logical_and(of_gates.logical_not()).any().item<bool>());
  EXPECT_TRUE(differ.logical_and(of_gates).any().item<bool>());
}

TEST(SineSpeNoise, FallsEvenlyInSignAndPlace) {
  Shape shape{.heads = 200, .dim = 4, .sines = 2, .width = 5, .gated = true};
  SineSpeNoise noise(shape);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Tensor fold = noise.fold({.seed = seed}, 0);
    // 4000 signs: 5 sigma of their mean. 200 draws of the first feature's bin: mean 3,
    // variance 2.
    EXPECT_NEAR(fold.sign().to(at::kDouble).mean().item<double>(), 0,
                5 / std::sqrt(4000.0));
    EXPECT_NEAR(fold.select(1, 0).abs().to(at::kDouble).mean().item<double>(), 3,
                5 * std::sqrt(2.0 / 200));
  }
}

TEST(SineSpeNoise, TakesGivenTensorsOfTheRightShapeOnly) {
  SineSpeNoise noise(kShape);
  Draw draw;
  draw.given["sine_spe.z"] = at::randn({1, 3, 5, 4, 16});
  EXPECT_TRUE(noise.code(draw, 0, at::kFloat).equal(draw.given["sine_spe.z"][0]));
  draw.given["sine_spe.gate"] = at::randn({3, 5, 15});
  EXPECT_THROW(noise.gate(draw, 0, at::kFloat), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
