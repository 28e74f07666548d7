#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "lagwise/attention/linear.h"
#include "lagwise/ops/testing/linear_problem.h"

namespace lagwise {
namespace {

using at::Tensor;
using Side = FeatureMap::Side;

// Statistical gates run on all of these; none was chosen after the fact.
constexpr uint64_t kSeeds[] = {1, 2, 3, 4, 5};

Tensor normal(at::IntArrayRef shape, uint64_t seed) {
  return ops::testing::Random(seed).normal(shape);
}

Features features(const FeatureMap& map, const Tensor& x, Side side, const Tensor& w) {
  return map.features(x, side, w, {});
}

Tensor whole(const Features& f) {
  return f.log_scale.defined() ? f.x * f.log_scale.exp().unsqueeze(-1) : f.x;
}

/// phi(q) . phi(k) over draws tends to exp(q . k / sqrt D). Rows are short: a feature
/// is lognormal, and with longer ones a thousand draws tell neither mean nor variance.
void expect_unbiased(const std::string& text, uint64_t seed) {
  constexpr int64_t kD = 6, kDraws = 1000;
  const auto map = make_feature_map(text);
  const Tensor q = 0.4 * normal({1, 1, 3, kD}, 10 + seed);
  const Tensor k = 0.4 * normal({1, 1, 4, kD}, 20 + seed);
  Tensor sum = at::zeros({3, 4}, at::kDouble), squares = sum.clone();
  for (int64_t step = 0; step < kDraws; ++step) {
    const Tensor w = map->directions({.seed = seed, .step = step}, 0, kD, q.options());
    const Tensor score =
        at::matmul(whole(features(*map, q, Side::query, w)),
                   whole(features(*map, k, Side::key, w)).transpose(-1, -2))[0][0];
    sum += score;
    squares += score.square();
  }
  const Tensor mean = sum / kDraws;
  const Tensor sigma = ((squares / kDraws - mean.square()) / kDraws).sqrt();
  const Tensor want = (at::matmul(q, k.transpose(-1, -2))[0][0] / std::sqrt(kD)).exp();
  EXPECT_LE(((mean - want).abs() / sigma).max().item<double>(), 5)
      << text << ", seed " << seed;
  // A wide gate would let anything through.
  EXPECT_LE((sigma / want).max().item<double>(), 0.05) << text << ", seed " << seed;
}

TEST(Favor, EstimatesTheSoftmaxKernelWithoutBias) {
  for (uint64_t seed : kSeeds)
    for (const char* text :
         {"favor:features=12,redraw=1", "favor:features=12,redraw=1,orthogonal=false",
          "favor_two_sided:features=12,redraw=1"})
      expect_unbiased(text, seed);
}

/// Causal attention with given features in double: no state, no tricks.
Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  const Tensor a = at::tril(at::matmul(q, k.transpose(-1, -2)));
  return at::matmul(a, v) / a.sum(-1, true);
}

/// Keys as public code has them: the maximum over all keys, then + 1e-4.
Tensor public_keys(const Tensor& k, const Tensor& w) {
  const Tensor z = k * std::pow(static_cast<double>(k.size(-1)), -0.25);
  const Tensor u = at::matmul(z, w.t()), h = z.square().sum(-1, true) / 2;
  return ((u - h - u.amax({-1, -2}, true)).exp() + 1e-4);
}

struct Problem {
  explicit Problem(uint64_t seed = 1)
      : q(normal({1, 2, 20, 4}, seed)),
        k(normal({1, 2, 20, 4}, seed + 1)),
        v(normal({1, 2, 20, 3}, seed + 2)) {}
  Tensor q, k, v;
};

/// How much another last key changes the outputs before it.
template <class Attention>
double leak(const Attention& attention, const Tensor& last_key) {
  Problem p;
  const Tensor before = attention(p);
  p.k = p.k.clone();
  p.k.slice(2, 19).copy_(last_key);
  return (attention(p) - before).slice(2, 0, 19).abs().max().template item<double>();
}

TEST(Favor, DoesNotLeakTheFutureAsPublicCodeDoes) {
  const LinearAttention ours("linear:map=favor:features=6",
                             {.heads = 2, .dim = 4, .value_dim = 3});
  const Tensor w =
      ours.map().directions({.seed = 1}, 0, 4, at::TensorOptions(at::kDouble));
  const auto public_code = [&](const Problem& p) {
    const Tensor phi_q = public_keys(p.q, w);  // the query's maximum cancels here
    return causal_attention(phi_q, public_keys(p.k, w), p.v);
  };
  const auto lagwise = [&](const Problem& p) {
    return ours.attend({.q = ours.features(p.q, Side::query, {}, w),
                        .k = ours.features(p.k, Side::key, {}, w),
                        .v = p.v});
  };
  const Tensor long_key = 2 * w[0];  // has the largest projection of all
  EXPECT_GT(leak(public_code, long_key), 0.05);
  EXPECT_EQ(leak(lagwise, long_key), 0);
  // And it is the attention that is meant: both agree while nothing is large.
  const auto map = make_feature_map("favor:features=6");
  const Problem p;
  const Tensor want = causal_attention(whole(features(*map, p.q, Side::query, w)),
                                       whole(features(*map, p.k, Side::key, w)), p.v);
  EXPECT_LE((lagwise(p) - want).abs().max().item<double>(), 1e-12);
}

/// Online softmax over keys: m is the largest log_scale so far, and what was summed
/// before is rescaled when it rises.
Tensor running_maximum(const Features& q, const Features& k, const Tensor& v) {
  const int64_t n = v.size(2);
  Tensor m = at::full({v.size(0), v.size(1), 1, 1}, -INFINITY, at::kDouble);
  Tensor s = at::zeros({v.size(0), v.size(1), k.x.size(3), v.size(3)}, at::kDouble);
  Tensor z = at::zeros({v.size(0), v.size(1), k.x.size(3), 1}, at::kDouble);
  std::vector<Tensor> out;
  for (int64_t i = 0; i < n; ++i) {
    const Tensor scale = k.log_scale.slice(2, i, i + 1).unsqueeze(-1);
    const Tensor top = at::maximum(m, scale);
    const Tensor fade = (m - top).exp();
    const Tensor key = k.x.slice(2, i, i + 1).transpose(-1, -2) * (scale - top).exp();
    s = fade * s + at::matmul(key, v.slice(2, i, i + 1));
    z = fade * z + key;
    m = top;
    const Tensor query = q.x.slice(2, i, i + 1);
    out.push_back(at::matmul(query, s) / at::matmul(query, z));
  }
  return at::cat(out, 2);
}

/// The same with every sum in the logarithm of its terms: right at any size.
Tensor in_logarithms(const Features& q, const Features& k, const Tensor& v) {
  // log score(i, j) = log sum_f x_i x_j + scale_j; the query's own cancels.
  Tensor score =
      at::matmul(q.x, k.x.transpose(-1, -2)).log() + k.log_scale.unsqueeze(2);
  const Tensor future = at::ones_like(score).triu(1).to(at::kBool);
  return at::matmul(score.masked_fill(future, -INFINITY).softmax(-1), v);
}

TEST(Favor, LogScaleServesARunningMaximumForKeysOfAnySize) {
  const auto map = make_feature_map("favor:features=32");
  for (double size : {1.0, 10.0, 60.0}) {
    Problem p;
    p.k = p.k * size;
    const Tensor w = map->directions({.seed = 3}, 0, 4, p.q.options());
    const Features q = features(*map, p.q, Side::query, w);
    const Features k = features(*map, p.k, Side::key, w);
    const Tensor got = running_maximum(q, k, p.v);
    EXPECT_LE((got - in_logarithms(q, k, p.v)).abs().max().item<double>(), 1e-10);
    EXPECT_FALSE(got.isnan().any().item<bool>()) << size;
  }
}

TEST(Favor, DrawsAnewEveryRedrawStepsAndPerLayer) {
  const auto map = make_feature_map("favor:features=16,redraw=10");
  const auto at = [&](int64_t step, int64_t micro_step, int64_t layer) {
    return map->directions({.seed = 1, .step = step, .micro_step = micro_step}, layer,
                           4, at::TensorOptions(at::kDouble));
  };
  EXPECT_TRUE(at(10, 0, 0).equal(at(19, 3, 0)));
  EXPECT_FALSE(at(9, 0, 0).equal(at(10, 0, 0)));
  EXPECT_FALSE(at(10, 0, 0).equal(at(10, 0, 1)));
  const auto never = make_feature_map("favor:features=16,redraw=0");
  const auto options = at::TensorOptions(at::kDouble);
  EXPECT_TRUE(never->directions({.seed = 1, .step = 0}, 0, 4, options)
                  .equal(never->directions({.seed = 1, .step = 12345}, 0, 4, options)));
}

TEST(Favor, TakesGivenDirections) {
  const Tensor w = normal({6, 4}, 1);
  const auto options = at::TensorOptions(at::kDouble);
  Draw draw;
  draw.given["favor"] = w;
  EXPECT_TRUE(
      make_feature_map("favor:features=6")->directions(draw, 0, 4, options).equal(w));
  EXPECT_TRUE(make_feature_map("favor_two_sided:features=12")
                  ->directions(draw, 0, 4, options)
                  .equal(w));
  EXPECT_THROW(make_feature_map("favor:features=7")->directions(draw, 0, 4, options),
               std::invalid_argument);
}

TEST(Favor, HasDLnDFeaturesUnlessTold) {
  EXPECT_EQ(make_feature_map("favor")->width(64), 256);  // 64 ln 64 = 266.2
  EXPECT_EQ(make_feature_map("favor_two_sided")->width(64), 256);
  EXPECT_EQ(make_feature_map("favor")->width(4), 16);
  EXPECT_EQ(make_feature_map("favor:features=10")->width(64), 10);
}

TEST(Favor, RefusesWhatItCannotDo) {
  for (const char* text :
       {"favor:features=-1", "favor_two_sided:features=7", "favor:norms=one",
        "favor:redraw=-1", "favor:offset=1", "favor_relu:offset=-1"})
    EXPECT_THROW(make_feature_map(text), std::invalid_argument) << text;
  EXPECT_THROW(
      make_feature_map("favor")->features(normal({1, 1, 2, 4}, 1), Side::key, {}, {}),
      std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
