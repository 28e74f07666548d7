#include "bench/materialised_spe.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace lagwise::bench {
namespace {

// The definition, one number at a time.
TEST(MaterialisedSpe, EqualsTheDefinition) {
  at::manual_seed(1);
  const int64_t heads = 2, n = 5, dim = 3, sines = 2, r = 4;
  const auto wide = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor q = at::randn({2, heads, n, dim}, wide);
  const at::Tensor k = at::randn({2, heads, n, dim}, wide);
  const auto raw = [&] { return at::randn({heads, dim, sines}, wide); };
  const MaterialisedSpe p{raw(), raw(), raw(), at::randn({heads, dim}, wide)};
  const at::Tensor z = at::randn({1, heads, dim, 2 * sines, r}, wide);
  const at::Tensor eps = at::randn({heads, dim, r}, wide);
  const auto [q_out, k_out] = materialised_spe(q, k, p, r, z, eps);

  const auto element = [](const at::Tensor& x, std::initializer_list<int64_t> index) {
    at::Tensor y = x;
    for (const int64_t i : index) y = y[i];
    return y.item<double>();
  };
  const double root = std::pow(double(r * dim), 0.25);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < r; ++j) {
          double want_q = 0, want_k = 0;
          for (int64_t d = 0; d < dim; ++d) {
            const double g = 1 / (1 + std::exp(-element(p.gate, {h, d})));
            double code_q = 0, code_k = 0;
            for (int64_t s = 0; s < sines; ++s) {
              const double f = 0.5 / (1 + std::exp(-element(p.frequencies, {h, d, s})));
              const double gain = std::log1p(std::exp(element(p.gains, {h, d, s})));
              const double angle = 2 * std::numbers::pi * f * double(i);
              const double turned = angle + element(p.offsets, {h, d, s});
              const double zc = element(z, {0, h, d, 2 * s, j});
              const double zs = element(z, {0, h, d, 2 * s + 1, j});
              code_q += gain * (std::cos(turned) * zc + std::sin(turned) * zs);
              code_k += gain * (std::cos(angle) * zc + std::sin(angle) * zs);
            }
            const double scale =
                std::sqrt(1 - g) / std::sqrt(2.0 * double(sines)) / root;
            const double still = std::sqrt(g) * element(eps, {h, d, j}) / root;
            want_q += element(q, {b, h, i, d}) * (scale * code_q + still);
            want_k += element(k, {b, h, i, d}) * (scale * code_k + still);
          }
          EXPECT_NEAR(element(q_out, {b, h, i, j}), want_q, 1e-12);
          EXPECT_NEAR(element(k_out, {b, h, i, j}), want_k, 1e-12);
        }
}

}  // namespace
}  // namespace lagwise::bench
