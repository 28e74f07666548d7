#include "lagwise/ops/favor.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>
#include <string>

#include "lagwise/ops/linear/linear_layout.h"

namespace lagwise::ops {
namespace {

using at::Tensor;

constexpr const char* kKinds[] = {"positive", "two_sided", "relu"};

Tensor normal(at::IntArrayRef shape, uint64_t seed) {
  return testing::Random(seed).normal(shape);
}

/// The definition: exp(w . z - |z|^2 / 2) / sqrt F with z = x D^(-1/4), unscaled.
Tensor by_definition(const Tensor& x, const Tensor& w, const std::string& kind) {
  const double d = static_cast<double>(x.size(-1));
  const Tensor z = x * std::pow(d, -0.25), u = at::matmul(z, w.t());
  if (kind == "relu") return at::relu(u) + 1e-3;
  const Tensor h = z.square().sum(-1, true) / 2;
  const Tensor all = kind == "two_sided" ? at::cat({u, -u}, -1) : u;
  return at::exp(all - h) / std::sqrt(static_cast<double>(all.size(-1)));
}

Tensor whole(const Features& f) {
  return f.log_scale.defined() ? f.x * f.log_scale.exp().unsqueeze(-1) : f.x;
}

double error(const Tensor& got, const Tensor& want) {
  if (want.numel() == 0) return 0;
  const Tensor w = want.to(at::kDouble);
  return ((got.to(at::kDouble) - w).abs().max() / w.abs().max()).item<double>();
}

TEST(FavorFeatures, AreTheDefinitionInEveryTypeAndShape) {
  const Tensor w = normal({11, 5}, 2);
  for (const std::string kind : kKinds)
    for (int64_t n : {0, 1, 7, 300}) {
      const Tensor x = normal({2, 3, n, 5}, 1);
      EXPECT_LE(error(whole(favor_features(x, w, kind)), by_definition(x, w, kind)),
                1e-13);
      const auto f32 = favor_features(x.to(at::kFloat), w.to(at::kFloat), kind);
      EXPECT_EQ(f32.x.scalar_type(), at::kFloat);
      EXPECT_LE(error(whole(f32), by_definition(x, w, kind)), 1e-5);
    }
}

TEST(FavorFeatures, HonourStridesOfInputsAndGradients) {
  const Tensor w = testing::columns_first(normal({11, 5}, 2));
  for (const std::string kind : kKinds)
    for (const auto lay : {testing::rows_first, testing::padded, testing::inner_step}) {
      Tensor x = lay(normal({2, 3, 9, 5}, 1)).detach().requires_grad_();
      const auto got = favor_features(x, w, kind);
      const Tensor want = by_definition(x, w, kind);
      EXPECT_LE(error(whole(got).detach(), want.detach()), 1e-13);
      const Tensor grad = lay(normal(want.sizes(), 3));
      EXPECT_LE(error(torch::autograd::grad({whole(got)}, {x}, {grad})[0],
                      torch::autograd::grad({want}, {x}, {grad})[0]),
                1e-12);
    }
}

/// Each output alone, with the maximum inside: the quotient that the caller forms
/// may use one without the other.
TEST(FavorFeatures, GradientsOfEachOutputAreThoseOfTheDefinition) {
  const Tensor w = normal({6, 4}, 2);
  for (const std::string kind : {"positive", "two_sided"}) {
    Tensor x = normal({1, 2, 5, 4}, 1).requires_grad_();
    const Features got = favor_features(x, w, kind);
    const Tensor want = by_definition(x, w, kind);
    const Tensor top = want.amax(-1, true);
    const Tensor dy = normal(want.sizes(), 3), ds = normal({1, 2, 5}, 4);
    const auto grad = [&](const Tensor& y, const Tensor& dy) {
      return torch::autograd::grad({y}, {x}, {dy}, true)[0];
    };
    EXPECT_LE(error(grad(got.x, dy), grad(want / top, dy)), 1e-12);
    EXPECT_LE(error(grad(got.log_scale, ds), grad(top.log().squeeze(-1), ds)), 1e-12);
  }
}

TEST(FavorFeatures, HaveTheSameBitsOnAnyNumberOfThreads) {
  const Tensor w = normal({37, 16}, 2).to(at::kFloat);
  Tensor x = normal({1, 3, 300, 16}, 1).to(at::kFloat).requires_grad_();
  const int before = at::get_num_threads();
  Tensor y, dx;
  for (int threads : {1, 2, 4}) {
    at::set_num_threads(threads);
    const Tensor now = whole(favor_features(x, w));
    const Tensor grad = torch::autograd::grad({now.square().sum()}, {x})[0];
    if (threads > 1) {
      EXPECT_TRUE(now.equal(y)) << threads;
      EXPECT_TRUE(grad.equal(dx)) << threads;
    }
    y = now, dx = grad;
  }
  at::set_num_threads(before);
}

void expect_refused(const std::function<void()>& act, const std::string& words) {
  try {
    act();
    FAIL() << "accepted, expected: " << words;
  } catch (const c10::Error& e) {
    const std::string text = e.what_without_backtrace();
    EXPECT_NE(text.find(words), std::string::npos) << text;
  }
}

TEST(FavorFeatures, RefuseWhatTheyCannotDo) {
  const Tensor x = normal({1, 1, 2, 4}, 1), w = normal({6, 4}, 2);
  expect_refused([&] { favor_features(x[0], w); },
                 "favor_features: expected x [B, H, N, D]");
  expect_refused([&] { favor_features(x, normal({6, 3}, 2)); }, "directions [m, D]");
  expect_refused([&] { favor_features(x, normal({0, 4}, 2)); }, "at least one");
  expect_refused([&] { favor_features(x, w.to(at::kFloat)); }, "same type");
  expect_refused([&] { favor_features(x, w, "cosine"); }, "got 'cosine'");
  expect_refused([&] { favor_features(x, w, "relu", -1); }, "offset >= 0");
  const Tensor learned = w.clone().requires_grad_();
  expect_refused([&] { favor_features(x, learned); }, "need no gradient");
}

TEST(FavorFeatures, RefuseASecondDerivative) {
  Tensor x = normal({1, 1, 2, 4}, 1).requires_grad_();
  const auto got = favor_features(x, normal({6, 4}, 2));
  const Tensor dx =
      torch::autograd::grad({got.x.square().sum()}, {x}, {}, true, true)[0];
  expect_refused([&] { torch::autograd::grad({dx.sum()}, {x}); },
                 "differentiated once");
}

}  // namespace
}  // namespace lagwise::ops
