#include "bench/torch_convolution.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "lagwise/ops/short_convolution.h"

namespace lagwise::bench {
namespace {

TEST(TorchConvolution, IsOursWithItsGradients) {
  at::manual_seed(1);
  const auto leaf = [](at::IntArrayRef sizes) {
    return at::randn(sizes, at::kDouble).set_requires_grad(true);
  };
  const at::Tensor x = leaf({2, 9, 6}), taps = leaf({4, 6}),
                   dy = at::randn({2, 9, 6}, at::kDouble);
  const auto all_of = [&](const at::Tensor& y) {
    auto all = torch::autograd::grad({y}, {x, taps}, {dy});
    all.push_back(y);
    return all;
  };
  const auto ours = all_of(ops::short_convolution(x, taps));
  for (const auto convolved : {convolved_by_products, convolved_by_conv1d}) {
    const auto theirs = all_of(convolved(x, taps));
    for (size_t i = 0; i < ours.size(); ++i)
      EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-12, 1e-12)) << i;
  }
}

}  // namespace
}  // namespace lagwise::bench
