#include "lagwise/attention/linear.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "lagwise/ops/testing/linear_outcome.h"

namespace lagwise {
namespace {

using at::Tensor;
using ops::testing::distance;
using Side = FeatureMap::Side;

constexpr HeadShape kShape = {.heads = 2, .dim = 4, .value_dim = 3};

Tensor normal(at::IntArrayRef shape, uint64_t seed) {
  return ops::testing::Random(seed).normal(shape);
}

struct Problem {
  Tensor q = normal({1, 2, 9, 4}, 1), k = normal({1, 2, 9, 4}, 2),
         v = normal({1, 2, 9, 3}, 3);
};

LinearInputs inputs(const Features& q, const Features& k, const Tensor& v) {
  LinearInputs in;
  in.q = q, in.k = k, in.v = v;
  return in;
}

/// sum_j a_ij v_j over the past, divided by its own sum + eps if asked.
Tensor by_definition(const Tensor& score, const Tensor& v, const Tensor& den_score) {
  const Tensor out = at::matmul(at::tril(score), v);
  return den_score.defined() ? out / (at::tril(den_score).sum(-1, true) + 1e-6) : out;
}

Tensor product(const Tensor& q, const Tensor& k) {
  return at::matmul(q, k.transpose(-1, -2));
}

void expect_refused(const std::string& text, const std::string& words) {
  try {
    LinearAttention attention(text, kShape);
    FAIL() << "accepted " << text;
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find(words), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos);
  }
}

TEST(LinearAttention, RefusesADenominatorFromSignedFeatures) {
  expect_refused("linear:map=none", "expected denominator=none");
  expect_refused("linear:map=silu,norm=rms_head", "expected denominator=none");
  LinearAttention("linear:map=silu,denominator=none,norm=rms_head", kShape);
}

TEST(LinearAttention, RefusesUnknownWordsAndValues) {
  expect_refused("softmax", "'softmax'");
  expect_refused("linear:map=relo", "relu");
  expect_refused("linear:mapp=relu", "mapp");
  expect_refused("linear:eps=-1", "eps >= 0");
  expect_refused("linear:denominator=separate", "auto, none");
  expect_refused("linear:map=favor:features=8;norm=chi", "norms");
}

TEST(LinearAttention, TakesOptionsOfItsMapBetweenSemicolons) {
  const LinearAttention a("linear:map=favor:features=8;norms=sqrt_d,norm=rms_head",
                          kShape);
  EXPECT_EQ(a.map().width(4), 8);
  const Tensor w = a.map().directions({}, 0, 4, at::TensorOptions(at::kDouble));
  EXPECT_LE(distance(w.norm(2, {1}), at::full({8}, 2.0, at::kDouble)), 1e-13);
}

TEST(LinearAttention, SeparateDenominatorsComeFromTheNormFeatures) {
  const LinearAttention a("linear:map=elu1", kShape);
  const Problem p;
  const Features q = a.features(p.q, Side::query, {}),
                 k = a.features(p.k, Side::key, {});
  // An encoding after the map: any linear change of the features will do.
  const Tensor turn = normal({4, 4}, 4);
  LinearInputs in =
      inputs({at::matmul(q.x, turn), {}}, {at::matmul(k.x, turn), {}}, p.v);
  in.q_norm = q, in.k_norm = k;
  const Tensor want = by_definition(product(in.q.x, in.k.x), p.v, product(q.x, k.x));
  EXPECT_LE(distance(a.attend(in), want), 1e-12);
  ops::LinearState state;
  for (int64_t i = 0; i < 9; ++i) {
    const auto row = [i](const Features& f) {
      return Features{f.x.slice(2, i, i + 1), {}};
    };
    LinearInputs one = inputs(row(in.q), row(in.k), p.v.slice(2, i, i + 1));
    one.q_norm = row(q), one.k_norm = row(k);
    EXPECT_LE(distance(a.step(one, state), want.slice(2, i, i + 1)), 1e-12);
  }
}

TEST(LinearAttention, SignedAttentionIsAPlainSumAndANorm) {
  const LinearAttention a(
      "linear:map=none,denominator=none,norm=rms_head,norm_gain=false", kShape);
  const Problem p;
  const Tensor sum = by_definition(product(p.q, p.k), p.v, {});
  const Tensor want = sum / (sum.square().mean(-1, true) + 1e-5).sqrt();
  EXPECT_LE(distance(a.attend(inputs({p.q, {}}, {p.k, {}}, p.v)), want), 1e-12);
}

TEST(LinearAttention, DecaysAndScalesAreHonoured) {
  const Problem p;
  const Tensor decay = at::tensor({-0.5, -0.1}, at::kDouble);
  const LinearAttention a("linear:map=favor:features=8", kShape);
  const LinearAttention bare("linear:map=favor:features=8,denominator=none", kShape);
  const Tensor w = a.map().directions({.seed = 1}, 0, 4, p.q.options());
  const Features q = a.features(p.q, Side::query, {}, w);
  const Features k = a.features(p.k, Side::key, {}, w);
  const auto whole = [](const Features& f) {
    return f.x * f.log_scale.exp().unsqueeze(-1);
  };
  const Tensor i = at::arange(9, at::kDouble);
  const Tensor fade = ((i.unsqueeze(1) - i).clamp_min(0) * decay.view({2, 1, 1})).exp();
  const Tensor score = product(whole(q), whole(k)) * fade;
  LinearInputs in = inputs(q, k, p.v);
  in.decay = decay;
  const Tensor sum = at::matmul(at::tril(score), p.v);
  // With a quotient the query's scale cancels, without one it counts.
  EXPECT_LE(distance(a.attend(in), sum / at::tril(score).sum(-1, true)), 1e-12);
  EXPECT_LE(distance(bare.attend(in), sum), 1e-12);
}

TEST(LinearAttention, BiasesBeginAsOneOnEachSide) {
  const LinearAttention a("linear:map=elu1,qk_bias=true", kShape);
  const Problem p;
  ASSERT_EQ(a.parameters().size(), 2u);
  EXPECT_EQ(a.parameters()[0].first, "q_bias");
  EXPECT_EQ(a.parameters()[1].first, "k_bias");
  EXPECT_LE(distance(a.add_bias(p.q, Side::query), p.q + 1), 0);
  {
    const at::NoGradGuard no_graph;
    a.parameters()[1].second.copy_(normal({2, 4}, 5));
  }
  EXPECT_LE(
      distance(a.add_bias(p.k, Side::key), p.k + a.parameters()[1].second.unsqueeze(1)),
      0);
  EXPECT_LE(distance(a.add_bias(p.q, Side::query), p.q + 1), 0);
  const LinearAttention plain("linear:map=elu1", kShape);
  EXPECT_TRUE(plain.parameters().empty());
  EXPECT_TRUE(plain.add_bias(p.q, Side::query).is_same(p.q));
}

TEST(LinearAttention, EpsilonIsThatOfTheMapUnlessGiven) {
  Problem p;
  p.q = at::ones_like(p.q), p.k = at::zeros_like(p.k);
  const auto last = [&](const std::string& text) {
    const LinearAttention a(text, kShape);
    return a.attend(inputs({p.q, {}}, {p.k + 1, {}}, at::ones_like(p.v)))
        .min()
        .item<double>();
  };
  // den = 4 (i + 1): exactly 1 with eps 0, less with eps added, more never.
  EXPECT_EQ(last("linear:map=favor"), 1);
  EXPECT_LT(last("linear:map=elu1"), 1);
  EXPECT_EQ(last("linear:map=elu1,eps=0"), 1);
  EXPECT_EQ(last("linear:map=cosformer"), 1);  // clamps: far above it nothing happens
  EXPECT_LT(last("linear:map=cosformer,eps_mode=add"), 1);
}

}  // namespace
}  // namespace lagwise
