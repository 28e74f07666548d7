#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <numbers>
#include <set>
#include <string>

#include "lagwise/encodings/encoding.h"

namespace lagwise {
namespace {

using at::Tensor;
using ::testing::HasSubstr;

Tensor parameter(Encoding& encoding, const std::string& name) {
  for (const auto& [key, value] : encoding.shared())
    if (key == name) return value.to(at::kDouble);
  throw std::logic_error("no parameter " + name);
}

struct Pair {
  Tensor q, k;  // [1, H, 1, D], double
};

Pair random_pair(int64_t heads, int64_t dim, uint64_t seed) {
  at::manual_seed(seed);
  const auto wide = at::TensorOptions().dtype(at::kDouble);
  return {at::randn({1, heads, 1, dim}, wide), at::randn({1, heads, 1, dim}, wide)};
}

Layer fresh_layer(Encoding& encoding, int64_t index = 0) {
  return {index, 4, encoding.layer(index, 4)};
}

TEST(SineSpeEncoding, FollowsTheDefinitionWithGivenNoise) {
  for (const bool gated : {true, false}) {
    const auto encoding =
        make_encoding(std::string("sine_spe:sines=3,realizations=12,gated=") +
                          (gated ? "true" : "false"),
                      {.heads = 2, .dim = 5, .seed = 3});
    at::manual_seed(2);
    const auto wide = at::TensorOptions().dtype(at::kDouble);
    const Tensor q = at::randn({2, 2, 40, 5}, wide), k = at::randn({2, 2, 40, 5}, wide);
    Draw draw;
    draw.given["sine_spe.z"] = at::randn({1, 2, 5, 6, 12}, wide);
    draw.given["sine_spe.gate"] = at::randn({2, 5, 12}, wide);
    const Layer layer = fresh_layer(*encoding);
    const Placement at{.query_start = 1000, .key_start = 1000};
    const Encoded got = encode_once(*encoding, q, k, at, draw, &layer);

    const double s = 1 / (std::sqrt(6.0) * std::pow(12.0 * 5, 0.25));
    const Tensor f = parameter(*encoding, "frequencies").sigmoid() / 2;
    const Tensor gain = at::softplus(parameter(*encoding, "gains")) * s;
    const Tensor place = at::arange(1000, 1040, wide).view({-1, 1});
    const auto code = [&](const Tensor& offset) {  // [H, D, N, R]
      const Tensor angle =
          f.unsqueeze(2) * place * (2 * std::numbers::pi) + offset.unsqueeze(2);
      const Tensor g = gain.unsqueeze(2);
      const Tensor w = at::stack({g * angle.cos(), g * angle.sin()}, -1).flatten(3);
      Tensor c = at::matmul(w, draw.given["sine_spe.z"][0]);
      if (!gated) return c;
      const Tensor open = layer["gate"].to(at::kDouble).sigmoid().view({2, 5, 1, 1});
      const Tensor eps = draw.given["sine_spe.gate"] / std::pow(12.0 * 5, 0.25);
      return (1 - open).sqrt() * c + open.sqrt() * eps.unsqueeze(2);
    };
    const Tensor offsets = parameter(*encoding, "offsets");
    const Tensor want_q = at::einsum("bhnd,hdnr->bhnr", {q, code(offsets)});
    const Tensor want_k = at::einsum("bhnd,hdnr->bhnr", {k, code(offsets * 0)});
    EXPECT_LE((got.q - want_q).abs().max().item<double>(), 1e-10);
    EXPECT_LE((got.k - want_k).abs().max().item<double>(), 1e-10);
    EXPECT_DOUBLE_EQ(got.scale, 1 / std::sqrt(12.0));
  }
}

TEST(SineSpeEncoding, PassesGradientsToEveryParameter) {
  for (const char* noise : {"gaussian", "sketch", "exact"}) {
    const auto encoding =
        make_encoding(std::string("sine_spe:sines=2,realizations=6,noise=") + noise,
                      {.heads = 2, .dim = 3});
    const Layer layer = fresh_layer(*encoding);
    Parameters all = encoding->shared();
    all.insert(all.end(), layer.own.begin(), layer.own.end());
    torch::autograd::variable_list leaves;
    for (auto& [name, x] : all) {
      x.set_data(x.to(at::kDouble));  // the encoding sees it: they are handles
      leaves.push_back(x.set_requires_grad(true));
    }
    const Pair pair = random_pair(2, 3, 4);
    const auto loss = [&] {
      const Encoded e = encode_once(*encoding, pair.q, pair.k,
                                    {.query_start = 9, .key_start = 4}, {}, &layer);
      return (e.q * e.k).sum() + e.q.pow(2).sum() + (e.k.pow(3)).sum();
    };
    const auto gradients = torch::autograd::grad({loss()}, leaves);
    for (size_t i = 0; i < leaves.size(); ++i) {
      const at::NoGradGuard no_graph;
      const Tensor direction = at::randn_like(leaves[i]);
      const double h = 1e-6;
      leaves[i].add_(direction, h);
      const double above = loss().item<double>();
      leaves[i].add_(direction, -2 * h);
      const double below = loss().item<double>();
      leaves[i].add_(direction, h);
      const double predicted = (gradients[i] * direction).sum().item<double>();
      EXPECT_NE(predicted, 0) << all[i].first;
      EXPECT_NEAR((above - below) / (2 * h), predicted,
                  1e-6 * (1 + std::abs(predicted)))
          << all[i].first << " " << noise;
    }
  }
}

TEST(SineSpeEncoding, KeepsItsGradientsFiniteWhereAGateIsFarOpenOrShut) {
  const auto encoding = make_encoding("sine_spe", {.heads = 1, .dim = 4});
  Layer layer = fresh_layer(*encoding);
  Tensor gate = at::tensor({-200.0, -30.0, 30.0, 200.0}).view({1, 4});
  layer.own[0].second = gate.set_requires_grad(true);
  const Pair x = random_pair(1, 4, 1);
  const Encoded e = encode_once(*encoding, x.q, x.k, {}, {}, &layer);
  const auto gradient = torch::autograd::grad({(e.q * e.k).sum()}, {gate})[0];
  EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << gradient;
}

TEST(SineSpeEncoding, DrawsTheSameBitsAgainAndOthersForAnotherStepOrLayer) {
  for (const char* noise : {"gaussian", "sketch"}) {
    const std::string text = std::string("sine_spe:noise=") + noise;
    const HeadShape shape{.heads = 2, .dim = 8, .seed = 1};
    const auto encoding = make_encoding(text, shape),
               saved = make_encoding(text, shape);
    at::manual_seed(1);
    const Tensor q = at::randn({1, 2, 50, 8}), k = at::randn({1, 2, 50, 8});
    const auto run = [&](Encoding& which, const Draw& draw, int64_t layer) {
      const Layer l{layer, 4, encoding->layer(0, 4)};  // the same gate parameters
      return encode_once(which, q, k, {}, draw, &l).q;
    };
    const Tensor first = run(*encoding, {.seed = 9, .step = 3}, 1);
    EXPECT_FALSE(run(*encoding, {.seed = 9, .step = 4}, 1).equal(first));
    EXPECT_FALSE(run(*encoding, {.seed = 9, .step = 3}, 2).equal(first));
    EXPECT_FALSE(run(*encoding, {.seed = 8, .step = 3}, 1).equal(first));
    EXPECT_TRUE(run(*encoding, {.seed = 9, .step = 3}, 1).equal(first));
    EXPECT_TRUE(run(*saved, {.seed = 9, .step = 3}, 1).equal(first));
  }
}

TEST(SineSpeEncoding, StreamsWhatItGivesInOnePiece) {
  for (const char* noise : {"gaussian", "sketch", "exact"}) {
    const auto encoding = make_encoding(std::string("sine_spe:sines=2,noise=") + noise,
                                        {.heads = 2, .dim = 8});
    const Layer layer = fresh_layer(*encoding);
    at::manual_seed(1);
    const Tensor q = at::randn({1, 2, 80, 8});
    const auto run = [&](int64_t begin, int64_t end) {
      const Tensor x = q.slice(2, begin, end);
      const Placement at{.query_start = 999'960 + begin, .key_start = 999'960 + begin};
      return encode_once(*encoding, x, x, at, {}, &layer);
    };
    const Encoded whole = run(0, 80);
    for (const int64_t begin : {0, 1, 31, 79})
      for (const int64_t rows : {1, 7}) {
        const int64_t end = std::min<int64_t>(80, begin + rows);
        EXPECT_LE((run(begin, end).q - whole.q.slice(2, begin, end))
                      .abs()
                      .max()
                      .item<double>(),
                  2e-6);
        EXPECT_LE((run(begin, end).k - whole.k.slice(2, begin, end))
                      .abs()
                      .max()
                      .item<double>(),
                  2e-6);
      }
  }
}

TEST(SineSpeEncoding, TakesPositionsOneByOne) {
  const auto encoding =
      make_encoding("sine_spe:noise=exact,sines=2", {.heads = 1, .dim = 4});
  const Layer layer = fresh_layer(*encoding);
  const Pair x = random_pair(1, 4, 1);
  const Tensor at = at::tensor({int64_t{123456}}, at::kLong);
  const Encoded named =
      encode_once(*encoding, x.q, x.k, {.query_at = at, .key_at = at}, {}, &layer);
  const Encoded counted = encode_once(
      *encoding, x.q, x.k, {.query_start = 123456, .key_start = 123456}, {}, &layer);
  EXPECT_TRUE(named.q.equal(counted.q));
}

TEST(SineSpeEncoding, BeginsAsThePaperDoesOrWide) {
  const HeadShape shape{.heads = 16, .dim = 64, .seed = 2};
  const auto paper = make_encoding("sine_spe", shape);
  const Tensor f = parameter(*paper, "frequencies");
  EXPECT_NEAR(f.mean().item<double>(), -4, 0.05);
  EXPECT_NEAR(f.std().item<double>(), 1, 0.05);
  EXPECT_NEAR(parameter(*paper, "offsets").std().item<double>(), 1, 0.05);
  // gains = 2 g / sqrt(|g|): their norm is 2 sqrt(|g|), whose square is 4 |g|.
  const Tensor norms = parameter(*paper, "gains").norm(2, {2}).pow(2) / 4;
  EXPECT_NEAR(norms.pow(2).mean().item<double>(), 5, 0.3);  // E |g|^2 = K
  EXPECT_NEAR(paper->layer(0, 1)[0].second.std().item<double>(), 1, 0.1);
  EXPECT_FALSE(paper->layer(0, 2)[0].second.equal(paper->layer(1, 2)[0].second));

  const auto wide = make_encoding("sine_spe:init=wide", shape);
  const Tensor periods = 2 / parameter(*wide, "frequencies").sigmoid();
  EXPECT_GE(periods.min().item<double>(), 4 - 1e-4);
  EXPECT_LE(periods.max().item<double>(), 512 + 1e-2);
  EXPECT_NEAR(periods.log().mean().item<double>(), std::log(4 * std::sqrt(128.0)), 0.1);
  EXPECT_NEAR(parameter(*wide, "offsets").std().item<double>(), 0.1, 0.005);
  EXPECT_TRUE(wide->layer(0, 1)[0].second.eq(-2).all().item<bool>());
}

TEST(SineSpeEncoding, HandsOverItsDampingAsDecayAndAsTheSameBias) {
  const auto encoding = make_encoding("sine_spe:decay=alibi", {.heads = 4, .dim = 4});
  const Tensor q = at::randn({1, 4, 3, 4}), k = at::randn({1, 4, 5, 4});
  const Encoded e = encode_once(*encoding, q, k, {.query_start = 2});
  const Tensor slopes = at::tensor({0.25f, 0.0625f, 1 / 64.0f, 1 / 256.0f});
  EXPECT_TRUE(e.decay.allclose(-slopes));
  // Row 0 stands at 2, key 4 at 4: column 0 is lag -2, and column 6 lag 4.
  EXPECT_TRUE(e.lag_bias.select(1, 0).allclose(-2 * slopes));
  EXPECT_TRUE(e.lag_bias.select(1, 6).allclose(-4 * slopes));
  EXPECT_TRUE(encoding->traits().linear_full);
  EXPECT_FALSE(encode_once(*make_encoding("sine_spe", {.heads = 4, .dim = 4}), q, k, {})
                   .decay.defined());
}

TEST(SineSpeEncoding, ChoosesItsNoiseWhereAsked) {
  // (2K+1) D = 48 <= 1.5 R: exact. 96 < 176: sketch.
  EXPECT_EQ(make_encoding("sine_spe:noise=auto,sines=1", {.dim = 16})->width(), 48);
  EXPECT_EQ(make_encoding("sine_spe:noise=auto,sines=5", {.dim = 16})->width(), 64);
  EXPECT_EQ(make_encoding("sine_spe", {.dim = 16})->width(), 64);
}

std::string message_of(const std::string& text, const Placement& at = {},
                       const Draw& draw = {}) {
  try {
    const auto encoding = make_encoding(text, {.heads = 1, .dim = 4});
    encode_once(*encoding, at::randn({1, 1, 4, 4}), at::randn({1, 1, 4, 4}), at, draw);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(SineSpeEncoding, SaysInOneLineWhatItExpected) {
  EXPECT_THAT(message_of("sine_spe:sines=0"), HasSubstr("expected sines >= 1, got 0"));
  EXPECT_THAT(message_of("sine_spe:realizations=0"), HasSubstr("realizations >= 1"));
  EXPECT_THAT(message_of("sine_spe:noise=white"), HasSubstr("gaussian"));
  EXPECT_THAT(message_of("sine_spe", {.grid = {2, 2}}), HasSubstr("a grid of 2 axes"));
  EXPECT_THAT(message_of("sine_spe", {.off_grid = 1}), HasSubstr("1 off the grid"));
  EXPECT_THAT(message_of("sine_spe:decay=alibi", {.query_at = at::arange(4)}),
              HasSubstr("got explicit positions"));
  Draw draw;
  draw.given["sine_spe.z"] = at::zeros({1, 1, 4, 10, 3});
  EXPECT_THAT(message_of("sine_spe", {}, draw),
              HasSubstr("expected sine_spe.z [1, 1, 4, 10, 64]"));
  EXPECT_THAT(message_of("sine_spe:noise=sketch", {}, draw),
              HasSubstr("expected no sine_spe.z"));
}

TEST(SineSpe, LearnsWavesInEachLayerIfNotShared) {
  const HeadShape shape{.heads = 2, .dim = 4, .seed = 3};
  const auto shared = make_encoding("sine_spe", shape);
  const auto apart = make_encoding("sine_spe:shared=false", shape);
  EXPECT_TRUE(apart->shared().empty());
  const Layer first{0, 2, apart->layer(0, 2)}, second{1, 2, apart->layer(1, 2)};
  for (const char* name : {"frequencies", "offsets", "gains", "gate"})
    EXPECT_FALSE(first[name].equal(second[name])) << name;
  // A layer whose parameters are those of all is encoded like it; the noise of other
  // layers differs too.
  for (const auto& [name, value] : shared->shared())
    EXPECT_TRUE(first[name].equal(value)) << name;
  const at::Tensor q = at::ones({1, 2, 5, 4});
  const Layer same{0, 2, shared->layer(0, 2)};
  EXPECT_TRUE(encode_once(*apart, q, q, {}, {.seed = 1}, &first)
                  .q.equal(encode_once(*shared, q, q, {}, {.seed = 1}, &same).q));
  const Layer moved{1, 2, first.own};
  EXPECT_FALSE(encode_once(*apart, q, q, {}, {.seed = 1}, &moved)
                   .q.equal(encode_once(*apart, q, q, {}, {.seed = 1}, &first).q));
}

}  // namespace
}  // namespace lagwise
