#include "lagwise/kernels/adamw.h"

#include <cmath>
#include <vector>

#include "lagwise/core/noise.h"
#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::for_each_simd_target;

constexpr AdamwRates kRates = {.beta1 = 0.9f,
                               .beta2 = 0.98f,
                               .eps = 1e-3f,
                               .shrink = 0.99f,
                               .rate = 0.05f,
                               .root_scale = 3.f,
                               .grad_scale = 0.25f};

std::vector<float> draws(size_t count, int64_t stream) {
  std::vector<float> x(count);
  Noise(1, stream).at({}).fill_normal<float>(0, x);
  return x;
}

struct State {
  std::vector<float> g, m, v, p;
  explicit State(size_t count)
      : g(draws(count, 1)), m(draws(count, 2)), v(draws(count, 3)), p(draws(count, 4)) {
    for (float& x : v) x = x * x;
  }
};

TEST(Adamw, MovesEachParameterAsDefined) {
  for (const size_t count :
       {size_t{0}, size_t{1}, size_t{3}, size_t{8}, size_t{17}, size_t{100}}) {
    const State before(count);
    for_each_simd_target([&] {
      State after(count);
      adamw(kRates, after.g.data(), after.m.data(), after.v.data(), after.p.data(),
            static_cast<int64_t>(count));
      for (size_t i = 0; i < count; ++i) {
        const double g = 0.25 * before.g[i];
        const double m = 0.9 * before.m[i] + 0.1 * g;
        const double v = 0.98 * before.v[i] + 0.02 * g * g;
        const double p = 0.99 * before.p[i] - 0.05 * m / (std::sqrt(v) * 3 + 1e-3);
        EXPECT_NEAR(after.m[i], m, 1e-6);
        EXPECT_NEAR(after.v[i], v, 1e-6 * (1 + v));
        EXPECT_NEAR(after.p[i], p, 1e-6 * (1 + std::abs(p)));
      }
    });
  }
}

TEST(Adamw, GivesTheSameBitsInAnySplit) {
  for_each_simd_target([&] {
    constexpr size_t count = 61;
    State whole(count), parts(count);
    const auto update = [](State& s, size_t begin, size_t end) {
      adamw(kRates, s.g.data() + begin, s.m.data() + begin, s.v.data() + begin,
            s.p.data() + begin, static_cast<int64_t>(end - begin));
    };
    update(whole, 0, count);
    for (size_t begin = 0; begin < count; begin += 7)
      update(parts, begin, std::min(begin + 7, count));
    EXPECT_EQ(whole.p, parts.p);
    EXPECT_EQ(whole.m, parts.m);
    EXPECT_EQ(whole.v, parts.v);
  });
}

}  // namespace
}  // namespace lagwise::kernels
