#include "bench/materialised_conv_spe.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lagwise/encodings/encoding.h"

namespace lagwise::bench {
namespace {

using at::Tensor;

// Ours passes the golden tensors; the baseline must compute the same from its noise.
TEST(MaterialisedConvSpe, ComputesWhatOursDoes) {
  constexpr int64_t kN = 30, kTaps = 6, kR = 5;
  const HeadShape shape{.heads = 2, .dim = 3};
  const auto made = make_encoding("conv_spe:kernel=6,realizations=5", shape);
  const Layer layer{0, 1, made->layer(0, 1)};
  const auto options = at::TensorOptions(at::kFloat);
  const Tensor q = at::randn({2, 2, kN, 3}, options),
               k = at::randn({2, 2, kN, 3}, options);
  const Tensor z = at::randn({kR, 6, 4 * kTaps + kN}, options),
               eps = at::randn({2, 3, kR}, options);
  Draw draw;
  draw.given = {{"conv_spe.z", z}, {"conv_spe.gate", eps}};
  const Encoded ours = encode_once(*made, q, k, {}, draw, &layer);
  const auto kernels = made->shared();
  const auto [q1, k1] = materialised_conv_spe(
      q, k, kernels[0].second, kernels[1].second, layer["gate"], kR, z, eps);
  EXPECT_TRUE(at::allclose(q1, ours.q, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(k1, ours.k, 1e-5, 1e-5));
}

}  // namespace
}  // namespace lagwise::bench
