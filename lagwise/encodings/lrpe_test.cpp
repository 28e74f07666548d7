#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/head_decay.h"
#include "lagwise/encodings/kernel_by_lag.h"

namespace lagwise {
namespace {

using at::Tensor;

Tensor normal(at::IntArrayRef sizes, uint64_t seed = 1) {
  at::manual_seed(seed);
  return at::randn(sizes, at::kDouble);
}

Encoded run(const std::string& text, const Tensor& q, const Tensor& k,
            const Placement& at = {}, const Draw& draw = {}) {
  const auto lrpe =
      make_encoding(text, {.heads = q.size(1), .dim = q.size(3), .seed = 5});
  return encode_once(*lrpe, q, k, at, draw);
}

Tensor scores(const std::string& text, const Tensor& q, const Tensor& k,
              const Placement& at = {}, const Draw& draw = {}) {
  return pair_scores(run(text, q, k, at, draw));
}

std::vector<std::string> every_pair() {
  std::vector<std::string> texts;
  for (const char* lambda : {"rotation", "mixed", "permutation", "unitary"})
    for (const char* p : {"identity", "householder", "odd_even", "dct", "fourier"})
      texts.push_back(std::string("lrpe:reflections=2,lambda=") + lambda + ",p=" + p);
  return texts;
}

TEST(Lrpe, IsShiftInvariantAndKeepsNormsForEveryLambdaAndP) {
  for (const std::string& text : every_pair()) {
    for (const int64_t d : {8, 7}) {
      const Tensor q = normal({2, 2, 30, d}), k = normal({2, 2, 17, d}, 2);
      const Tensor here = scores(text, q, k);
      for (const int64_t shift : {1, 300, 1'000'000}) {
        const Placement at{.query_start = shift, .key_start = shift};
        EXPECT_TRUE(at::allclose(scores(text, q, k, at), here, 1e-10, 1e-10)) << text;
      }
      const Encoded e = run(text, q, k, {.query_start = 12345});
      EXPECT_TRUE(at::allclose(e.q.norm(2, 3), q.norm(2, 3), 1e-12)) << text;
    }
  }
}

TEST(Lrpe, IsTheAuthorsFinalSettingUnlessToldOtherwise) {
  const HeadShape shape{.heads = 2, .dim = 8, .seed = 5};
  const auto bare = make_encoding("lrpe", shape);
  const auto spelt = make_encoding(
      "lrpe:lambda=rotation,p=householder,vectors=fixed,angles=learned", shape);
  const Parameters own = bare->layer(0, 1);
  ASSERT_EQ(own.size(), 1u);  // the vectors of its reflection are not learned
  EXPECT_EQ(own[0].first, "theta");
  const Tensor q = normal({1, 2, 9, 8}), k = normal({1, 2, 9, 8}, 2);
  const Encoded e = encode_once(*bare, q, k, {});
  EXPECT_TRUE(at::equal(e.q, encode_once(*spelt, q, k, {}).q));
  const auto rope = make_encoding("rope:layout=interleaved", shape);
  EXPECT_FALSE(at::allclose(pair_scores(e), pair_scores(encode_once(*rope, q, k, {})),
                            1e-3, 1e-3));
}

TEST(Lrpe, WithFixedAnglesAndNoPIsRope) {
  const Tensor q = normal({1, 3, 40, 16}), k = normal({1, 3, 40, 16}, 2);
  const auto rope = make_encoding("rope:layout=interleaved", {.heads = 3, .dim = 16});
  EXPECT_TRUE(at::equal(run("lrpe:p=identity,angles=fixed", q, k).q,
                        encode_once(*rope, q, k, {}).q));
}

TEST(Lrpe, LearnsAnglesWhereThereAreAny) {
  const HeadShape shape{.heads = 2, .dim = 8};
  for (const char* text : {"lrpe", "lrpe:lambda=mixed", "lrpe:lambda=unitary"})
    EXPECT_EQ(make_encoding(text, shape)->layer(0, 1).size(), 1u) << text;
  for (const char* text :
       {"lrpe:lambda=permutation", "lrpe:type=b", "lrpe:type=c", "lrpe:angles=fixed"})
    EXPECT_TRUE(make_encoding(text, shape)->layer(0, 1).empty()) << text;
}

TEST(Lrpe, OddEvenWithRotationGivesTheScoresOfHalfRope) {
  const Tensor q = normal({1, 3, 40, 16}), k = normal({1, 3, 40, 16}, 2);
  const auto rope = make_encoding("rope:layout=half", {.heads = 3, .dim = 16});
  EXPECT_TRUE(at::allclose(scores("lrpe:lambda=rotation,p=odd_even,angles=fixed", q, k),
                           pair_scores(encode_once(*rope, q, k, {})), 1e-11, 1e-11));
}

TEST(Lrpe, IsCosformerWithOneCommonAngle) {
  const Tensor q = normal({1, 2, 20, 6}).relu(), k = normal({1, 2, 20, 6}, 2).relu();
  const int64_t most = 50;
  Draw draw;
  draw.given["theta"] =
      at::full({6}, std::numbers::pi / (2 * double(most)), at::kDouble);
  const Tensor i = at::arange(20, at::kDouble);
  const Tensor lag = i.unsqueeze(1) - i;
  const Tensor want = at::matmul(q, k.transpose(-1, -2)) *
                      (std::numbers::pi / (2 * double(most)) * lag).cos() /
                      std::sqrt(6.);
  EXPECT_TRUE(at::allclose(
      scores("lrpe:lambda=unitary,p=identity,angles=fixed", q, k, {}, draw), want,
      1e-12, 1e-12));
}

TEST(Lrpe, CannotTellPastFromFutureWithARealPAndPhases) {
  const Tensor q = normal({1, 1, 1, 8}), k = normal({1, 1, 1, 8}, 2);
  const auto at_lag = [&](const std::string& text, int64_t lag) {
    return scores(text, q, k, {.query_start = 100 + lag, .key_start = 100})
        .item<double>();
  };
  for (const std::string& text : every_pair()) {
    const bool even = text.find("unitary") != std::string::npos &&
                      text.find("fourier") == std::string::npos;
    EXPECT_EQ(std::abs(at_lag(text, 3) - at_lag(text, -3)) < 1e-9, even) << text;
  }
}

/// S <- g Lambda(-1) S + (P k) v^T, o = S^T P q: no angle ever grows.
TEST(Lrpe, MovingStateEqualsAbsolutePositionsAfterManySteps) {
  const int64_t n = 100'000, d = 4;
  const Tensor q = normal({1, 1, n, d}), k = normal({1, 1, n, d}, 2);
  const Tensor v = normal({n}, 3);
  const Encoded e = run("lrpe:lambda=rotation,p=identity,angles=fixed", q, k);
  const auto *eq = e.q.data_ptr<double>(), *ek = e.k.data_ptr<double>();
  const auto *pq = q.data_ptr<double>(), *pk = k.data_ptr<double>();
  const double f[2] = {1, std::pow(10000., -0.5)}, g = 0.999;
  double absolute[4] = {}, moving[4] = {}, worst = 0;
  for (int64_t i = 0; i < n; ++i) {
    double by_position = 0, by_motion = 0;
    for (int64_t j = 0; j < d / 2; ++j) {
      double& a = moving[2 * j];
      double& b = moving[2 * j + 1];
      const double c = std::cos(f[j]), s = std::sin(f[j]);
      const double turned = c * a + s * b;
      b = c * b - s * a, a = turned;
    }
    for (int64_t j = 0; j < d; ++j) {
      const double v_i = v[i].item<double>();
      absolute[j] = g * absolute[j] + ek[i * d + j] * v_i;
      moving[j] = g * moving[j] + pk[i * d + j] * v_i;
      by_position += absolute[j] * eq[i * d + j];
      by_motion += moving[j] * pq[i * d + j];
    }
    worst = std::max(worst, std::abs(by_position - by_motion));
  }
  EXPECT_LT(worst, 1e-9);
}

TEST(Lrpe, PermutesBeyondAnyTable) {
  const Tensor x = normal({1, 1, 1, 8});
  Draw draw;
  draw.given["permutation"] = at::tensor({7, 2, 4, 1, 6, 3, 0, 5});
  const auto at_position = [&](int64_t p) {
    return run("lrpe:lambda=permutation,p=identity", x, x, {.query_start = p}, draw)
        .q[0][0][0];
  };
  Tensor want = x[0][0][0];
  for (int64_t p = 0; p < 5; ++p) {
    EXPECT_TRUE(at::equal(at_position(p), want)) << p;
    want = want.index_select(0, draw.given["permutation"]);
  }
  // Its cycles are (0 7 5 3 1 2 4 6): of order 8.
  EXPECT_TRUE(at::equal(at_position(8'000'000'003), at_position(3)));
}

TEST(Lrpe, TakesAnglesBAndCFromAFixedHorizon) {
  const Tensor ones = at::ones({1, 1, 1, 8}, at::kDouble);
  const auto cosine_sum = [&](const std::string& type, const Placement& at) {
    return scores("lrpe:p=identity,type=" + type, ones, ones, at).item<double>() *
           std::sqrt(8.);
  };
  double b = 0, c = 0;
  for (int j = 1; j <= 4; ++j) {
    b += 2 * std::cos(3 * std::numbers::pi / 200 * j / 4);
    c += 2 * std::cos(3 * std::numbers::pi / 200 / j);
  }
  EXPECT_NEAR(cosine_sum("b", {.query_start = 3, .horizon = 100}), b, 1e-12);
  EXPECT_NEAR(cosine_sum("c", {.query_start = 3, .horizon = 100}), c, 1e-12);
  EXPECT_NEAR(cosine_sum("b,horizon=100", {.query_start = 3}), b, 1e-12);
  EXPECT_THROW(cosine_sum("b", {}), std::invalid_argument);
}

TEST(Lrpe, SpreadsAnglesOverHeadsAndAxes) {
  const auto angle = [](int64_t m) { return std::pow(10000., -2 * double(m) / 16); };
  Placement at{.query_start = 5};  // cell (1, 2)
  at.grid = {2, 3};
  const Tensor ones = at::ones({1, 2, 1, 8}, at::kDouble);
  const Tensor got =
      scores("lrpe:spread=true,p=identity,angles=fixed", ones, ones, at) *
      std::sqrt(8.);
  for (int64_t h = 0; h < 2; ++h) {
    double want = 0;
    for (int64_t j = 0; j < 2; ++j)
      want += 2 * std::cos(1 * angle(4 * h + j)) + 2 * std::cos(2 * angle(4 * h + j));
    EXPECT_NEAR(got[0][h].item<double>(), want, 1e-12);
  }
}

TEST(Lrpe, FadesByItsSchedule) {
  const Tensor q = normal({1, 4, 3, 8});
  const auto lrpe = make_encoding("lrpe:decay=lightning", {.heads = 4, .dim = 8});
  const Layer second{1, 5, lrpe->layer(1, 5)};
  EXPECT_TRUE(at::equal(encode_once(*lrpe, q, q, {}, {}, &second).decay,
                        head_decay("lightning", 4, 1, 5)));
  EXPECT_TRUE(lrpe->traits().exact);  // as a bias by lag
  EXPECT_FALSE(lrpe->traits().linear_full);
}

TEST(Lrpe, RefusesWhatDoesNotGoTogether) {
  const HeadShape shape{.heads = 2, .dim = 8};
  for (const char* text :
       {"lrpe:type=b,lambda=unitary", "lrpe:type=c,angles=learned",
        "lrpe:lambda=permutation,angles=learned", "lrpe:vectors=learned,p=dct",
        "lrpe:reflections=0,p=householder", "lrpe:base=1", "lrpe:lambda=rope"})
    EXPECT_THROW(make_encoding(text, shape), std::invalid_argument) << text;
  EXPECT_THROW(make_encoding("lrpe:lambda=mixed", {.heads = 1, .dim = 2}),
               std::invalid_argument);
  Placement grid;
  grid.grid = {2, 2};
  const Tensor q = normal({1, 2, 4, 8});
  EXPECT_THROW(run("lrpe:lambda=permutation", q, q, grid), std::invalid_argument);
  EXPECT_THROW(run("lrpe:decay=alibi", q, q, grid), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
