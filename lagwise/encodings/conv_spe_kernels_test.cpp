#include "lagwise/encodings/conv_spe_kernels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace lagwise {
namespace {

TEST(ConvSpeKernels, ReadsTapsOfOneToThreeAxes) {
  EXPECT_EQ(conv_spe_taps("128"), (std::vector<int64_t>{128}));
  EXPECT_EQ(conv_spe_taps("7x5"), (std::vector<int64_t>{7, 5}));
  EXPECT_EQ(conv_spe_taps("3x1x2"), (std::vector<int64_t>{3, 1, 2}));
  for (const char* text : {"", "0", "7x", "x7", "2x2x2x2", "1.5", "-3"})
    EXPECT_THROW(conv_spe_taps(text), std::invalid_argument) << text;
}

TEST(ConvSpeKernels, DifferBySideAndLayer) {
  const HeadShape shape{.heads = 2, .dim = 3, .seed = 4};
  const Parameters first = conv_spe_kernels(shape, {5, 2}, 0);
  const Parameters second = conv_spe_kernels(shape, {5, 2}, 1);
  EXPECT_EQ(first[0].first, "query_kernel");
  EXPECT_EQ(first[1].first, "key_kernel");
  EXPECT_EQ(first[0].second.sizes(), at::IntArrayRef({6, 1, 5, 2}));
  EXPECT_FALSE(at::equal(first[0].second, first[1].second));
  EXPECT_FALSE(at::equal(first[0].second, second[0].second));
  EXPECT_TRUE(first[0].second.ge(0).all().item<bool>());
}

TEST(ConvSpeKernels, BelongToAllLayersOrToEach) {
  const HeadShape shape{.heads = 2, .dim = 4, .seed = 3};
  const auto shared = make_encoding("conv_spe:kernel=5", shape);
  const auto apart = make_encoding("conv_spe:kernel=5,shared=false", shape);
  EXPECT_EQ(shared->shared().size(), 2u);
  EXPECT_TRUE(apart->shared().empty());
  const Layer first{0, 2, apart->layer(0, 2)}, second{1, 2, apart->layer(1, 2)};
  for (const char* name : {"query_kernel", "key_kernel", "gate"})
    EXPECT_FALSE(at::equal(first[name], second[name])) << name;
  const at::Tensor q = at::ones({1, 2, 5, 4});
  const Layer same{0, 2, shared->layer(0, 2)};
  EXPECT_TRUE(at::equal(encode_once(*apart, q, q, {}, {.seed = 1}, &first).q,
                        encode_once(*shared, q, q, {}, {.seed = 1}, &same).q));
}

}  // namespace
}  // namespace lagwise
