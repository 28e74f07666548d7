#include "lagwise/nn/block.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lagwise::nn {
namespace {

BlockConfig config_of(bool pre_norm) {
  BlockConfig config;
  config.self.dim = 8, config.self.heads = 2, config.self.attention = "linear";
  config.feed_forward = 12, config.pre_norm = pre_norm;
  return config;
}

Block block_of(const BlockConfig& config, int64_t before = 0) {
  Initial initial{4, before};
  return Block(config, make_encoding("none", {.heads = 2, .dim = 4}), initial);
}

const at::Tensor kRows = normal_parameter({2, 5, 8}, 1.0, 9, 9).detach();

TEST(Block, LeavesTheStreamAloneWhereNothingIsAdded) {
  Block block = block_of(config_of(true));
  const at::NoGradGuard no_graph;
  for (const char* last : {"attn.out_proj.weight", "ff_out.weight"})
    block.named_parameters()[last].zero_();
  EXPECT_TRUE(block.forward(kRows, {}).equal(kRows));
}

TEST(Block, EndsInANormIfNormsComeAfter) {
  const at::Tensor y = block_of(config_of(false)).forward(kRows, {});
  EXPECT_NEAR(y.square().mean(-1).sub(1).abs().max().item<double>(), 0, 1e-4);
  const at::Tensor x = block_of(config_of(true)).forward(kRows, {});
  EXPECT_GT(x.square().mean(-1).sub(1).abs().max().item<double>(), 0.05);
}

TEST(Block, ExtendsAsItsForwardPass) {
  Block block = block_of(config_of(true));
  const at::NoGradGuard no_graph;
  const at::Tensor want = block.forward(kRows, {});
  BlockState state = block.start(2);
  for (int64_t i = 0; i < 5; ++i) {
    Pass pass;
    pass.at.query_start = pass.at.key_start = i;
    const at::Tensor got = block.extend(state, kRows.narrow(1, i, 1), pass);
    EXPECT_TRUE(at::allclose(got, want.narrow(1, i, 1), 1e-4, 1e-5));
  }
}

TEST(Block, DropsOutOtherNumbersThanAnotherBlock) {
  Pass pass;
  pass.dropout = 0.5;
  const auto dropped = [&](int64_t before) {
    Block block = block_of(config_of(true), before);
    const at::NoGradGuard no_graph;
    for (const auto& parameter : block.named_parameters())
      if (parameter.key() == "ff_out.bias") parameter.value().fill_(1e3);
    return (block.forward(kRows, pass) - kRows).abs().gt(100);
  };
  EXPECT_TRUE(dropped(0).equal(dropped(0)));
  EXPECT_FALSE(dropped(0).equal(dropped(6)));
}

}  // namespace
}  // namespace lagwise::nn
