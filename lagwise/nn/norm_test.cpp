#include "lagwise/nn/norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lagwise::nn {
namespace {

TEST(Norm, TakesTheSizeOut) {
  const at::Tensor x = at::arange(12, at::kFloat).view({3, 4}) * 5 + 1;
  const at::Tensor rms = Norm("rms", 4).forward(x),
                   centred = Norm("layer", 4).forward(x);
  EXPECT_NEAR(rms.square().mean(-1).sub(1).abs().max().item<double>(), 0, 1e-4);
  EXPECT_NEAR(centred.mean(-1).abs().max().item<double>(), 0, 1e-5);
  EXPECT_NEAR(centred.square().mean(-1).sub(1).abs().max().item<double>(), 0, 1e-4);
  EXPECT_TRUE(at::allclose(rms * x.square().mean(-1, true).sqrt(), x, 1e-4, 1e-4));
}

}  // namespace
}  // namespace lagwise::nn
