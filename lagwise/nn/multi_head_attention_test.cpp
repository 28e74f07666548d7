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

/// The mean over rows of the largest weight that a new layer of one head gives to any
/// of 256 keys. Values are the unit vectors, so that what comes out are the weights.
double largest_weight(const char* encoding) {
  constexpr int64_t kRows = 256;
  AttentionConfig config;
  config.dim = kRows, config.heads = 1, config.attention = "exact";
  config.causal = false;
  Initial initial{4};
  const std::shared_ptr<Encoding> made =
      make_encoding(encoding, {.heads = 1, .dim = kRows});
  const MultiHeadAttention layer(config, made, initial);
  const at::Tensor x = normal_parameter({kRows, kRows}, 1.0, 9, 9).detach();
  const at::NoGradGuard no_graph;
  const auto all = layer.named_parameters();
  at::Tensor values = all["v_proj.weight"], out = all["out_proj.weight"];
  values.copy_(at::linalg_inv(x.to(at::kDouble)).t());
  out.copy_(at::eye(kRows));
  Pass pass;
  pass.at.causal = false;
  pass.code = made->code(pass.at, {}, kRows, kRows);
  const at::Tensor weights = layer.forward(x.unsqueeze(0), x.unsqueeze(0), pass)[0];
  EXPECT_NEAR(weights.sum().item<double>(), kRows, 0.1);
  return std::get<0>(weights.max(1)).mean().item<double>();
}

// T5 does not divide scores by sqrt(D): with queries as large as others' the softmax
// would begin saturated, and hardly learn.
TEST(MultiHeadAttention, BeginsUnsaturatedWhateverScaleTheEncodingHas) {
  for (const char* encoding : {"none", "rope:layout=half", "huang", "t5"}) {
    SCOPED_TRACE(encoding);
    EXPECT_LT(largest_weight(encoding), 0.08);  // 256 normal scores: 0.04
    EXPECT_GT(largest_weight(encoding), 0.02);
  }
}

}  // namespace
}  // namespace lagwise::nn
