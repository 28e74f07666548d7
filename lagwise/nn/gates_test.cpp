#include "lagwise/nn/gates.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lagwise::nn {
namespace {

TEST(ForgetGate, BeginsAsAFixedDecayWithGeometricClocks) {
  const ForgetGate gate(6, 5, {.forgets = true});
  const at::Tensor l = gate.forward(at::randn({2, 7, 6}));
  ASSERT_EQ(l.sizes(), at::IntArrayRef({2, 5, 7}));
  const double clocks[] = {8, 32, 128, 512, 2048};
  for (int64_t h = 0; h < 5; ++h)
    EXPECT_NEAR((l.select(1, h) * clocks[h] + 1).abs().max().item<double>(), 0, 1e-5);
}

TEST(ForgetGate, GivesOneHeadTheMiddleOfItsClocks) {
  const ForgetGate gate(3, 1,
                        {.forgets = true, .shortest_clock = 4, .longest_clock = 100});
  EXPECT_NEAR(gate.forward(at::zeros({1, 1, 3})).item<double>(), -1.0 / 20, 1e-7);
}

TEST(ForgetGate, IsItsDefinition) {
  ForgetGate gate(4, 2, {.forgets = true});
  gate.to(at::kDouble);
  const at::NoGradGuard no_graph;
  at::manual_seed(3);
  for (at::Tensor& one : gate.parameters()) one.copy_(at::randn_like(one));
  const auto all = gate.named_parameters();
  const at::Tensor x = at::randn({2, 3, 4}, at::kDouble), l = gate.forward(x);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t t = 0; t < 3; ++t) {
        const double inner = (all["weight"][h] * x[b][t]).sum().item<double>() +
                             all["beta"][h].item<double>();
        const double want =
            -std::exp(all["rho"][h].item<double>()) * std::log1p(std::exp(inner));
        EXPECT_NEAR(l[b][h][t].item<double>(), want, 1e-12);
      }
}

TEST(WriteGate, BeginsAtAHalfAndIsItsDefinition) {
  WriteGate gate(4, 3);
  const at::Tensor x = at::randn({2, 5, 4});
  EXPECT_TRUE(gate.forward(x).equal(at::full({2, 3, 5}, 0.5)));
  const at::NoGradGuard no_graph;
  at::Tensor u = gate.parameters()[0];
  u.copy_(at::randn_like(u));
  const at::Tensor want = 1 / (1 + (-at::matmul(x, u.t())).exp());
  EXPECT_TRUE(at::allclose(gate.forward(x), want.transpose(1, 2), 1e-5, 1e-6));
}

}  // namespace
}  // namespace lagwise::nn
