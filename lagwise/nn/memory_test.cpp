// Attention that remembers by content against its definition, token by token in double
// from the layer's own parameters:
//
//     S <- e^(l_t) S + b_t k_t (v_t - e^(l_t) S^T k_t)^T      o_t = S^T q_t
//
// and exact attention with a forget gate against softmax over all pairs.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lagwise/nn/multi_head_attention.h"

namespace lagwise::nn {
namespace {

using at::Tensor;

constexpr int64_t kModel = 6, kHeads = 2, kKeys = 4, kValues = 3, kRows = 11;

struct Subject {
  std::shared_ptr<MultiHeadAttention> layer;
  Tensor x = at::randn({2, kRows, kModel}, at::kDouble);

  explicit Subject(const char* attention) {
    AttentionConfig config;
    config.dim = kModel, config.heads = kHeads, config.attention = attention;
    config.key_dim = kKeys, config.value_dim = kValues;
    Initial initial{4};
    layer = std::make_shared<MultiHeadAttention>(
        config, make_encoding("none", {.heads = kHeads, .dim = kKeys}), initial);
    layer->to(at::kDouble);
    const at::NoGradGuard no_graph;
    for (const auto& one : layer->named_parameters())
      if (one.key().find("_proj") == std::string::npos)
        one.value().add_(at::randn_like(one.value()), 0.3);
  }

  Tensor weight(const std::string& name) const {
    return layer->named_parameters()[name].detach();
  }
  Tensor through(const std::string& name, const Tensor& rows) const {
    return at::linear(rows, weight(name + ".weight"), weight(name + ".bias"));
  }
  /// [B, H, N, W] of a projection, convolved where the layer has a convolution.
  Tensor heads(const std::string& name) const {
    Tensor rows = through(name + "_proj", x);
    if (layer->named_parameters().contains(name + "_conv.taps")) {
      const Tensor taps = weight(name + "_conv.taps"), from = rows;
      rows = at::zeros_like(from);
      for (int64_t t = 0; t < kRows; ++t)
        for (int64_t j = 0; j < taps.size(0) && j <= t; ++j)
          rows.select(1, t).add_(from.select(1, t - j) * taps[j]);
    }
    return rows.view({2, kRows, kHeads, -1}).transpose(1, 2);
  }
  Tensor log_decay() const {  // [B, H, N]
    const Tensor inner = at::linear(x, weight("forget.weight"), weight("forget.beta"));
    return (-weight("forget.rho").exp() * at::log1p(inner.exp())).transpose(1, 2);
  }
  Tensor strength() const {
    return at::sigmoid(at::linear(x, weight("write.weight"))).transpose(1, 2);
  }
  /// Heads [B, H, N, E] to what the layer returns.
  Tensor joined(const Tensor& heads, bool gated) const {
    Tensor rows = heads.transpose(1, 2).reshape({2, kRows, kHeads * kValues});
    if (gated) {
      const Tensor g = through("gate_proj", x);
      rows = rows * g * at::sigmoid(g);
    }
    return through("out_proj", rows);
  }
  Tensor got() const {
    const at::NoGradGuard no_graph;
    return layer->forward(x, x, {});
  }
};

Tensor unit(const Tensor& x) { return x / x.norm(2, -1, true); }

TEST(Memory, OfAGatedDeltaNetIsItsDefinition) {
  at::manual_seed(6);
  const Subject s("gated_deltanet:clocks=2..9");
  const Tensor q = unit(s.heads("q")), k = unit(s.heads("k")), v = s.heads("v");
  const Tensor l = s.log_decay(), b = s.strength();
  Tensor state = at::zeros({2, kHeads, kKeys, kValues}, at::kDouble);
  std::vector<Tensor> out;
  for (int64_t t = 0; t < kRows; ++t) {
    const Tensor key = k.select(2, t).unsqueeze(-1);  // [B, H, D, 1]
    state = state * l.select(2, t).exp().view({2, kHeads, 1, 1});
    const Tensor recalled = (state * key).sum(2);  // [B, H, E]
    const Tensor write = (v.select(2, t) - recalled) * b.select(2, t).unsqueeze(-1);
    state = state + key * write.unsqueeze(2);
    out.push_back((state * q.select(2, t).unsqueeze(-1)).sum(2));
  }
  Tensor o = at::stack(out, 2);
  o = o / (o.square().mean(-1, true) + 1e-5).sqrt() *
      s.weight("norm_gain").unsqueeze(1);
  EXPECT_TRUE(at::allclose(s.got(), s.joined(o, true), 1e-9, 1e-10));
}

TEST(Memory, OfAGatedHeadWeighsPairsByTheGatesBetweenThem) {
  at::manual_seed(7);
  const Subject s("linear:forget=gated,clocks=2..9,map=elu1,eps=0");
  const auto phi = [](const Tensor& x) { return at::elu(x) + 1; };
  const Tensor c = s.log_decay().cumsum(2);
  const Tensor faded = (c.unsqueeze(3) - c.unsqueeze(2)).exp().tril();
  const Tensor w =
      at::matmul(phi(s.heads("q")), phi(s.heads("k")).transpose(2, 3)) * faded;
  const Tensor o = at::matmul(w, s.heads("v")) / w.sum(-1, true);
  EXPECT_TRUE(at::allclose(s.got(), s.joined(o, false), 1e-9, 1e-10));
}

TEST(Memory, OfAForgettingTransformerIsASoftmaxOfFadedScores) {
  at::manual_seed(8);
  const Subject s("forgetting_transformer:clocks=2..9");
  const Tensor c = s.log_decay().cumsum(2);
  const Tensor hidden = at::ones({kRows, kRows}, at::kBool).triu(1);
  const Tensor score =
      at::matmul(s.heads("q"), s.heads("k").transpose(2, 3)) / std::sqrt(1.0 * kKeys) +
      c.unsqueeze(3) - c.unsqueeze(2);
  const Tensor o =
      at::matmul(at::softmax(score.masked_fill(hidden, -INFINITY), -1), s.heads("v"));
  EXPECT_TRUE(at::allclose(s.got(), s.joined(o, false), 1e-9, 1e-10));
}

/// A new gated head has the clock it is given, whatever the input.
TEST(Memory, OfANewGatedLayerIsAFixedDecay) {
  const auto made = [](const char* attention) {
    AttentionConfig config;
    config.dim = kModel, config.heads = kHeads, config.attention = attention;
    Initial initial{4};
    return std::make_shared<MultiHeadAttention>(
        config, make_encoding("none", {.heads = kHeads, .dim = 3}), initial);
  };
  const auto gated = made("linear:forget=gated,clocks=2..9,eps=0"),
             plain = made("linear:eps=0");
  const at::NoGradGuard no_graph;
  const Tensor x = at::randn({1, kRows, kModel});
  const auto part = [&](const char* name) {
    const auto all = plain->named_parameters();
    const std::string at = name;
    return at::linear(x, all[at + ".weight"], all[at + ".bias"])
        .view({1, kRows, kHeads, 3})
        .transpose(1, 2);
  };
  const auto phi = [](const Tensor& rows) { return at::elu(rows) + 1; };
  const Tensor rate = at::tensor({-1.0 / 2, -1.0 / 9}, at::kFloat).view({2, 1, 1});
  const Tensor i = at::arange(kRows, at::kFloat);
  const Tensor fixed = ((i.unsqueeze(1) - i) * rate).exp().tril();
  const Tensor w =
      at::matmul(phi(part("q_proj")), phi(part("k_proj")).transpose(2, 3)) * fixed;
  const Tensor o = at::matmul(w, part("v_proj")) / w.sum(-1, true);
  const auto all = plain->named_parameters();
  const Tensor want = at::linear(o.transpose(1, 2).reshape({1, kRows, kModel}),
                                 all["out_proj.weight"], all["out_proj.bias"]);
  EXPECT_TRUE(at::allclose(gated->forward(x, x, {}), want, 1e-4, 1e-5));
}

}  // namespace
}  // namespace lagwise::nn
