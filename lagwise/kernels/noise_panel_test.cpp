#include "lagwise/kernels/noise_panel.h"

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::for_each_simd_target;
using lagwise::testing::Mat;

template <class T>
void expect_single_draws(NoiseKind kind, int64_t first, int64_t count, int64_t width) {
  const Noise noise(0x0123456789abcdef, 4, 1000, 3);
  const NoiseAt at{.layer = 5, .head = 11, .feature = 511, .realisation = 1000};
  Mat<T> got(count, width);
  noise_panel<T>(noise.at(at), kind, first, count, width, got.data());
  for (int64_t l = 0; l < width; ++l) {
    NoiseAt one = at;
    one.realisation += l;
    const NoiseRow row = noise.at(one);
    for (int64_t i = 0; i < count; ++i) {
      const double want =
          kind == NoiseKind::normal ? row.normal(first + i) : row.sign(first + i);
      ASSERT_EQ(got(i, l), static_cast<T>(want)) << first + i << " " << l;
    }
  }
}

TEST(NoisePanel, EqualsSingleDrawsToTheBit) {
  for_each_simd_target([] {
    for (NoiseKind kind : {NoiseKind::normal, NoiseKind::sign}) {
      for (int64_t first : {int64_t{-7}, int64_t{0}, int64_t{3}, (int64_t{1} << 32) - 2,
                            (int64_t{1} << 47) - 40})
        for (int64_t count : {0, 1, 2, 3, 4, 5, 9, 16}) {
          expect_single_draws<float>(kind, first, count, 32);
          expect_single_draws<double>(kind, first, count, 16);
        }
      expect_single_draws<double>(kind, 1'000'001, 2000, 16);
    }
  });
}

}  // namespace
}  // namespace lagwise::kernels
