#include "lagwise/nn/multi_head_attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lagwise::nn {
namespace {

/// softmax(q k^T / sqrt(D)) v of each head, causal, written out.
at::Tensor reference(const MultiHeadAttention& layer, const at::Tensor& x,
                     int64_t heads) {
  const auto all = layer.named_parameters();
  const auto through = [&](const std::string& name, const at::Tensor& rows) {
    return at::linear(rows, all[name + ".weight"], all[name + ".bias"]);
  };
  const int64_t n = x.size(1), d = x.size(2) / heads;
  std::vector<at::Tensor> out;
  for (int64_t h = 0; h < heads; ++h) {
    const auto part = [&](const char* name) {
      return through(name, x).narrow(2, h * d, d);
    };
    const at::Tensor hidden = at::ones({n, n}, at::kBool).triu(1);
    const at::Tensor score =
        at::matmul(part("q_proj"), part("k_proj").transpose(1, 2)) /
        std::sqrt(static_cast<double>(d));
    out.push_back(at::matmul(at::softmax(score.masked_fill(hidden, -INFINITY), -1),
                             part("v_proj")));
  }
  return through("out_proj", at::cat(out, 2));
}

TEST(MultiHeadAttention, IsSoftmaxOfEachHeadBetweenProjections) {
  AttentionConfig config;
  config.dim = 12, config.heads = 3, config.attention = "exact";
  Initial initial{4};
  const MultiHeadAttention layer(config, make_encoding("none", {.heads = 3, .dim = 4}),
                                 initial);
  const at::Tensor x = normal_parameter({2, 7, 12}, 1.0, 9, 9).detach();
  EXPECT_TRUE(
      at::allclose(layer.forward(x, x, {}), reference(layer, x, 3), 1e-4, 1e-5));
}

TEST(MultiHeadAttention, KeepsParametersOfTheEncodingUnderPos) {
  AttentionConfig config;
  config.dim = 12, config.heads = 3, config.attention = "exact";
  Initial initial{4};
  const MultiHeadAttention layer(
      config, make_encoding("huang:max=9", {.heads = 3, .dim = 4}), initial);
  EXPECT_NE(layer.named_parameters().find("pos.E"), nullptr);
}

}  // namespace
}  // namespace lagwise::nn
