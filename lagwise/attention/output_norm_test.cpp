#include "lagwise/attention/output_norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "lagwise/ops/testing/linear_problem.h"

namespace lagwise {
namespace {

using at::Tensor;

constexpr int64_t kHeads = 3, kWidth = 5;

OutputNorm make(const std::string& options) {
  Spec spec("norm:" + options);
  OutputNorm norm(spec, kHeads, kWidth);
  spec.finish();
  return norm;
}

Tensor normal(at::IntArrayRef shape, uint64_t seed) {
  return ops::testing::Random(seed).normal(shape);
}

double distance(const Tensor& a, const Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(OutputNorm, RmsHeadGivesEveryHeadItsOwnSize) {
  const Tensor x = 7 * normal({2, kHeads, 4, kWidth}, 1);
  const Tensor out = make("norm=rms_head,norm_eps=1e-3,norm_gain=false").apply(x);
  for (int64_t h = 0; h < kHeads; ++h) {
    const Tensor row = x[1][h][2];
    const double mean = row.square().mean().item<double>();
    EXPECT_LE(distance(out[1][h][2], row / std::sqrt(mean + 1e-3)), 1e-14);
  }
}

TEST(OutputNorm, LayerConcatNormsAllHeadsTogether) {
  const Tensor x = 7 * normal({2, kHeads, 4, kWidth}, 1) + 3;
  const Tensor out = make("norm=layer_concat,norm_gain=false").apply(x);
  ASSERT_EQ(out.sizes(), x.sizes());
  const Tensor row = x.select(0, 1).select(1, 2);  // [H, E] of one token
  const double mean = row.mean().item<double>();
  const double var = (row - mean).square().mean().item<double>();
  EXPECT_LE(
      distance(out.select(0, 1).select(1, 2), (row - mean) / std::sqrt(var + 1e-5)),
      1e-14);
}

TEST(OutputNorm, GainsBeginAsOneAndAreTrained) {
  const Tensor x = normal({2, kHeads, 4, kWidth}, 1);
  for (const char* name : {"norm=rms_head", "norm=layer_concat"}) {
    const OutputNorm norm = make(name);
    const Tensor bare = make(std::string(name) + ",norm_gain=false").apply(x);
    EXPECT_LE(distance(norm.apply(x), bare), 1e-15);
    ASSERT_EQ(norm.parameters().size(), 1u);
    const auto [key, gain] = norm.parameters()[0];
    EXPECT_EQ(key, "norm_gain");
    EXPECT_TRUE(gain.requires_grad());
    {
      const at::NoGradGuard no_graph;
      gain.mul_(normal({kHeads, kWidth}, 2));  // a handle: the norm sees it
    }
    EXPECT_LE(distance(norm.apply(x), bare * gain.unsqueeze(1)), 1e-14);
    const Tensor ct = normal(x.sizes(), 3);
    const Tensor got = torch::autograd::grad({norm.apply(x)}, {gain}, {ct})[0];
    EXPECT_LE(distance(got, (bare * ct).sum(at::IntArrayRef({0, 2}))),
              1e-5);  // in f32, as the gain
  }
}

TEST(OutputNorm, NoneIsNothing) {
  const Tensor x = normal({1, kHeads, 4, kWidth}, 1);
  EXPECT_TRUE(make("norm=none").apply(x).is_same(x));
  EXPECT_TRUE(make("norm=none").parameters().empty());
}

TEST(OutputNorm, ZerosStayZerosWithAFiniteGradient) {
  Tensor x = at::zeros({1, kHeads, 2, kWidth}, at::kDouble).requires_grad_();
  for (const char* name : {"norm=rms_head", "norm=layer_concat"}) {
    const Tensor out = make(name).apply(x);
    EXPECT_TRUE(out.eq(0).all().item<bool>());
    EXPECT_TRUE(
        torch::autograd::grad({out.sum()}, {x})[0].isfinite().all().item<bool>());
  }
  EXPECT_EQ(make("norm=layer_concat").apply(x.slice(2, 0, 0)).sizes(),
            at::IntArrayRef({1, kHeads, 0, kWidth}));
}

TEST(OutputNorm, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(make("norm=batch"), std::invalid_argument);
  EXPECT_THROW(make("norm=rms_head,norm_eps=0"), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
