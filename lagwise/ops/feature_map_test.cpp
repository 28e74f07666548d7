#include "lagwise/ops/feature_map.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "lagwise/ops/linear/linear_layout.h"

namespace lagwise::ops {
namespace {

using at::Tensor;

Tensor normal(at::IntArrayRef shape, uint64_t seed) {
  return testing::Random(seed).normal(shape);
}

double error(const Tensor& got, const Tensor& want) {
  return ((got - want).abs().max() / want.abs().max()).item<double>();
}

TEST(FeatureMap, IsTorchsOwnWithItsGradient) {
  struct Row {
    const char* text;
    Tensor (*torch)(const Tensor&);
  };
  const Row rows[] = {
      {"none", [](const Tensor& x) { return x * 1; }},
      {"elu1", [](const Tensor& x) { return at::elu(x) + 1; }},
      {"relu", [](const Tensor& x) { return at::relu(x) + 1e-3; }},
      {"relu:offset=0", [](const Tensor& x) { return at::relu(x); }},
      {"relu_squared", [](const Tensor& x) { return at::relu(x).square(); }},
      {"relu_squared:offset=2",
       [](const Tensor& x) { return at::relu(x).square() + 2; }},
      {"exp", [](const Tensor& x) { return x.exp(); }},
      {"silu", [](const Tensor& x) { return at::silu(x); }}};
  for (const Row& row : rows)
    for (const auto lay : {testing::rows_first, testing::inner_step}) {
      Tensor x = lay(normal({2, 3, 17, 5}, 1)).detach().requires_grad_();
      const Tensor got = feature_map(x, row.text), want = row.torch(x);
      const Tensor grad = lay(normal(x.sizes(), 3));
      EXPECT_LE(error(got.detach(), want.detach()), 1e-14) << row.text;
      EXPECT_LE(error(torch::autograd::grad({got}, {x}, {grad})[0],
                      torch::autograd::grad({want}, {x}, {grad})[0]),
                1e-14)
          << row.text;
    }
  EXPECT_EQ(feature_map(normal({0, 3}, 1), "silu").sizes(), at::IntArrayRef({0, 3}));
  EXPECT_THROW(feature_map(normal({2}, 1), "gelu"), c10::Error);
  EXPECT_THROW(feature_map(at::ones({2}, at::kLong), "exp"), c10::Error);
}

}  // namespace
}  // namespace lagwise::ops
