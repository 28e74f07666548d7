#include "lagwise/nn/linear_layer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lagwise::nn {
namespace {

TEST(LinearLayer, MultipliesAndAdds) {
  Initial initial{3};
  const LinearLayer layer(50, 40, initial);
  const at::Tensor w = layer.named_parameters()["weight"],
                   b = layer.named_parameters()["bias"];
  EXPECT_NEAR(w.std().item<double>(), 1 / std::sqrt(50.0), 0.01);
  EXPECT_EQ(b.abs().max().item<double>(), 0);
  const at::Tensor x = at::ones({2, 50});
  EXPECT_TRUE(at::allclose(layer.forward(x), at::matmul(x, w.t()) + b, 1e-5, 1e-5));
}

TEST(LinearLayer, TakesWeightsNoOtherLayerHas) {
  Initial initial{3};
  const LinearLayer a(5, 5, initial), b(5, 5, initial, 1.0, false);
  EXPECT_EQ(initial.next, 2);
  EXPECT_FALSE(a.named_parameters()["weight"].equal(b.named_parameters()["weight"]));
  EXPECT_EQ(b.parameters().size(), 1u);
}

}  // namespace
}  // namespace lagwise::nn
