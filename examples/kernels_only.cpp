// The kernels alone: no torch, plain memory, one head.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "lagwise/kernels/linear_attention.h"

namespace kernels = lagwise::kernels;
using lagwise::MatView;

int main() {
  constexpr int64_t kN = 300, kD = 16, kE = 24;
  std::vector<float> q(kN * kD), k(kN * kD), v(kN * kE), out(kN * kE), s(kD * kE),
      z(kD);
  uint32_t state = 1;
  auto uniform = [&] {
    return static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) /
           (1 << 24);
  };
  for (auto* x : {&q, &k, &v}) std::generate(x->begin(), x->end(), uniform);

  kernels::Denominator<float> denominator;
  denominator.from = kernels::Denominator<float>::From::features;
  denominator.eps = 1e-6f;
  denominator.z = z.data();
  std::vector<float> scratch(
      static_cast<size_t>(kernels::linear_scratch<float>(kD, kE)));
  kernels::causal_linear<float>(
      {.x = {q.data(), kN, kD, kD}}, {.x = {k.data(), kN, kD, kD}},
      {.x = {v.data(), kN, kE, kE}}, {}, denominator, {s.data(), kD, kE, kE},
      {.out = {out.data(), kN, kE, kE}}, scratch.data());

  // The definition: each row looks at all rows up to itself.
  double worst = 0;
  for (int64_t i = 0; i < kN; ++i) {
    std::vector<double> sum(kE);
    double den = 1e-6;
    for (int64_t j = 0; j <= i; ++j) {
      double score = 0;
      for (int64_t d = 0; d < kD; ++d) score += double{q[i * kD + d]} * k[j * kD + d];
      for (int64_t e = 0; e < kE; ++e) sum[e] += score * v[j * kE + e];
      den += score;
    }
    for (int64_t e = 0; e < kE; ++e)
      worst = std::max(worst, std::abs(sum[e] / den - out[i * kE + e]));
  }
  std::printf("kernels_only: largest difference from the definition %.1e\n", worst);
  return worst < 1e-5 ? 0 : 1;
}
