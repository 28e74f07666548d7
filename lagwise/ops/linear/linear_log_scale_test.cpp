// Keys that count exp(log_scale) times: the running maximum keeps any size in range,
// and lets no key touch what came before it.

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "lagwise/ops/testing/linear_outcome.h"
#include "lagwise/ops/testing/linear_reference.h"

namespace lagwise::ops {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

struct Inputs {
  at::Tensor q, k, v, c, q_norm, k_norm, decay;
};

Inputs random_inputs(int64_t n, double spread, uint64_t seed = 1) {
  testing::Random random(seed);
  const auto features = [&](int64_t width) {
    return random.uniform({2, 3, n, width}, 0.2F, 1.2F);
  };
  Inputs x;
  x.q = features(9), x.k = features(9), x.v = random.normal({2, 3, n, 6});
  x.c = random.normal({2, 3, n}) * spread;
  x.q_norm = features(5), x.k_norm = features(5);
  x.decay = random.uniform({3}, -0.5F, -0.01F);
  return x;
}

struct Case {
  const char* name;
  bool causal, separate, decays;
};

LinearOptions options_of(const Case& c, const Inputs& x) {
  LinearOptions options;
  options.causal = c.causal;
  options.eps = 0;
  options.log_scale = x.c;
  if (c.decays) options.decay = x.decay;
  if (c.separate) {
    options.denominator = "separate";
    options.q_norm = x.q_norm, options.k_norm = x.k_norm;
  }
  return options;
}

/// The definition: features times exp(c), nothing else. For modest c only.
at::Tensor by_definition(const Case& c, const Inputs& x) {
  LinearOptions options = options_of(c, x);
  options.log_scale = at::Tensor();
  const at::Tensor weight = x.c.exp().unsqueeze(-1);
  if (c.separate) options.k_norm = x.k_norm * weight;
  return reference::linear_attention(x.q, x.k * weight, x.v, {}, options).out;
}

class LogScale : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Cases, LogScale,
                         ::testing::Values(Case{"Causal", true, false, false},
                                           Case{"CausalSeparate", true, true, false},
                                           Case{"CausalDecay", true, false, true},
                                           Case{"Full", false, false, false},
                                           Case{"FullSeparate", false, true, false}),
                         [](const auto& info) { return info.param.name; });

TEST_P(LogScale, WeighsKeysAsTheDefinitionDoes) {
  for (const int64_t n : {1, 2, 33, 300}) {
    Inputs x = random_inputs(n, 2.0);
    std::vector<at::Tensor*> all = {&x.q, &x.k, &x.v, &x.c};
    if (GetParam().separate) all.insert(all.end(), {&x.q_norm, &x.k_norm});
    std::vector<at::Tensor> leaves;
    for (at::Tensor* one : all) {
      one->set_requires_grad(true);
      leaves.push_back(*one);
    }
    const at::Tensor want = by_definition(GetParam(), x);
    const at::Tensor got = linear_attention(x.q, x.k, x.v, options_of(GetParam(), x));
    EXPECT_LE(testing::distance(got, want), 1e-11 * testing::largest(want)) << n;
    const at::Tensor grad = testing::Random(7).normal(got.sizes());
    const auto d_want = torch::autograd::grad({want}, leaves, {grad});
    const auto d_got = torch::autograd::grad({got}, leaves, {grad});
    for (size_t i = 0; i < leaves.size(); ++i)
      EXPECT_LE(testing::distance(d_got[i], d_want[i]),
                1e-10 * testing::largest(d_want[i]) + 1e-13)
          << "input " << i << ", n " << n;
  }
}

// exp(1000) is no number, but a quotient of such is; and adding a constant to every
// log_scale changes nothing.
TEST_P(LogScale, StaysInRangeAtAnySize) {
  Inputs x = random_inputs(100, 2.0);
  const at::Tensor near = linear_attention(x.q, x.k, x.v, options_of(GetParam(), x));
  x.c = x.c + 1000;
  const at::Tensor far = linear_attention(x.q, x.k, x.v, options_of(GetParam(), x));
  EXPECT_LE(testing::distance(far, near), 1e-11 * testing::largest(near));
  x.c = x.c * 500;  // single keys outweigh all others
  const at::Tensor wild = linear_attention(x.q, x.k, x.v, options_of(GetParam(), x));
  EXPECT_TRUE(wild.isfinite().all().item<bool>());
}

TEST_P(LogScale, CarriesItsMaximumInTheState) {
  const Inputs x = random_inputs(50, 3.0);
  const LinearOptions whole = options_of(GetParam(), x);
  const auto rows = [](const at::Tensor& t, int64_t begin, int64_t end) {
    return t.defined() ? t.slice(2, begin, end) : t;
  };
  const auto all = linear_attention_stateful(x.q, x.k, x.v, {}, whole);
  LinearState state;
  std::vector<at::Tensor> outs;
  const std::vector<int64_t> cuts = {0, 7, 7, 8, 40, 50};
  for (size_t i = 1; i < cuts.size(); ++i) {
    const int64_t begin = cuts[i - 1], end = cuts[i];
    LinearOptions part = whole;
    part.log_scale = rows(x.c, begin, end);
    part.q_norm = rows(whole.q_norm, begin, end);
    part.k_norm = rows(whole.k_norm, begin, end);
    const auto r =
        linear_attention_stateful(rows(x.q, begin, end), rows(x.k, begin, end),
                                  rows(x.v, begin, end), state, part);
    outs.push_back(r.out), state = r.state;
  }
  EXPECT_LE(testing::distance(state.m, all.state.m), 0.0);
  EXPECT_LE(testing::distance(state.s, all.state.s),
            1e-12 * testing::largest(all.state.s));
  EXPECT_LE(testing::distance(state.z, all.state.z),
            1e-12 * testing::largest(all.state.z));
  if (!GetParam().causal) return;  // a full row sees the keys given so far
  EXPECT_LE(testing::distance(at::cat(outs, 2), all.out),
            1e-11 * testing::largest(all.out));
}

TEST_P(LogScale, PassesGradientsThroughTheState) {
  Inputs x = random_inputs(20, 2.0);
  for (at::Tensor* one : {&x.q, &x.k, &x.v, &x.c}) one->set_requires_grad(true);
  const at::Tensor want = by_definition(GetParam(), x).slice(2, 12);
  const LinearOptions whole = options_of(GetParam(), x);
  LinearState state;
  at::Tensor out;
  for (const auto& [begin, end] : {std::pair{0, 12}, std::pair{12, 20}}) {
    const auto rows = [&](const at::Tensor& t) {
      return t.defined() ? t.slice(2, begin, end) : t;
    };
    LinearOptions part = whole;
    part.log_scale = rows(x.c);
    part.q_norm = rows(whole.q_norm), part.k_norm = rows(whole.k_norm);
    const auto r =
        linear_attention_stateful(rows(x.q), rows(x.k), rows(x.v), state, part);
    out = r.out, state = r.state;
  }
  const at::Tensor grad = testing::Random(7).normal(out.sizes());
  const std::vector<at::Tensor> leaves = {x.q, x.k, x.v, x.c};
  const auto d_want = torch::autograd::grad({want}, leaves, {grad});
  const auto d_got = torch::autograd::grad({out}, leaves, {grad});
  for (size_t i = 0; i < leaves.size(); ++i)
    EXPECT_LE(testing::distance(d_got[i], d_want[i]),
              1e-10 * testing::largest(d_want[i]))
        << "input " << i;
}

TEST(LogScaleSteps, EqualTheWhole) {
  for (const bool separate : {false, true}) {
    const Case c{"", true, separate, true};
    const Inputs x = random_inputs(30, 3.0);
    const LinearOptions whole = options_of(c, x);
    const at::Tensor want = linear_attention(x.q, x.k, x.v, whole);
    const auto zeros = [](at::IntArrayRef sizes) {
      return at::zeros(sizes, at::kDouble);
    };
    const LinearState state{zeros({2, 3, 9, 6}), zeros({2, 3, separate ? 5 : 9}),
                            at::full({2, 3}, kNothing, at::kDouble)};
    for (int64_t i = 0; i < 30; ++i) {
      LinearOptions one = whole;
      one.log_scale = x.c.select(2, i);
      if (separate) one.q_norm = x.q_norm.select(2, i);
      if (separate) one.k_norm = x.k_norm.select(2, i);
      const at::Tensor got = linear_attention_step(x.q.select(2, i), x.k.select(2, i),
                                                   x.v.select(2, i), state, one);
      EXPECT_LE(testing::distance(got, want.select(2, i)), 1e-11) << i;
    }
  }
}

// The maximum over all keys would let a later key change earlier rows. Ours may cut
// them into other chunks, which rounds differently, and nothing else.
TEST(LogScaleCausality, ALaterKeyChangesNothingBeforeIt) {
  const Case c{"", true, false, false};
  Inputs x = random_inputs(40, 2.0);
  const at::Tensor before = linear_attention(x.q, x.k, x.v, options_of(c, x));
  x.c = x.c.clone();
  x.c.slice(2, 25).add_(300);
  const at::Tensor after = linear_attention(x.q, x.k, x.v, options_of(c, x));
  EXPECT_LE(testing::distance(after.slice(2, 0, 25), before.slice(2, 0, 25)), 1e-14);
  EXPECT_GE(testing::distance(after.slice(2, 25), before.slice(2, 25)), 1e-2);
}

TEST(LogScaleRagged, KeepsAMaximumPerSequence) {
  const Case c{"", true, false, false};
  const Inputs x = random_inputs(20, 3.0);
  LinearOptions options = options_of(c, x);
  const auto row = [&](const at::Tensor& t) { return t.narrow(0, 0, 1); };
  options.log_scale = row(x.c);
  options.cu_seqlens = at::tensor({0, 8, 8, 20}, at::kLong);
  const auto got = linear_attention_stateful(row(x.q), row(x.k), row(x.v), {}, options);
  ASSERT_EQ(got.state.m.sizes(), at::IntArrayRef({3, 3}));
  for (const auto& [begin, end] : {std::pair{0, 8}, std::pair{8, 20}}) {
    const auto part = [&](const at::Tensor& t) { return row(t).slice(2, begin, end); };
    LinearOptions one = options_of(c, x);
    one.log_scale = part(x.c);
    const at::Tensor want = linear_attention(part(x.q), part(x.k), part(x.v), one);
    EXPECT_TRUE(got.out.slice(2, begin, end).equal(want));
  }
  EXPECT_EQ(got.state.m[1][0].item<double>(), kNothing);
}

// A weight of nothing: as if the key were not there.
TEST(LogScaleEdge, KeysOfNoWeightAreNotSeen) {
  const Case c{"", true, false, false};
  Inputs x = random_inputs(6, 1.0);
  x.c = at::full({2, 3, 6}, kNothing, at::kDouble);
  const at::Tensor got = linear_attention(x.q, x.k, x.v, options_of(c, x));
  EXPECT_EQ(testing::largest(got), 0.0);
}

void expect_refused(const Inputs& x, const LinearOptions& options,
                    const std::string& part) {
  try {
    linear_attention(x.q, x.k, x.v, options);
    FAIL() << "accepted; expected a message with " << part;
  } catch (const c10::Error& error) {
    const std::string said = error.what_without_backtrace();
    EXPECT_EQ(said.rfind("linear_attention: expected", 0), 0U) << said;
    EXPECT_NE(said.find(part), std::string::npos) << said;
  }
}

TEST(LogScaleErrors, RefusesWhatHasNoMeaning) {
  const Inputs x = random_inputs(6, 1.0);
  const LinearOptions good = options_of({"", true, false, false}, x);
  LinearOptions bad = good;
  bad.eps = 1e-6;
  expect_refused(x, bad, "eps = 0 with log_scale");
  bad = good, bad.denominator = "none";
  expect_refused(x, bad, "a denominator with log_scale");
  bad = good, bad.feature_map = "elu1";
  expect_refused(x, bad, "feature_map 'none' with log_scale");
  bad = good, bad.log_scale = x.c.slice(2, 1);
  expect_refused(x, bad, "log_scale [B, H, M]");
  bad = good, bad.decay = x.decay.clone().set_requires_grad(true);
  expect_refused(x, bad, "decay that needs no gradient");
}

// bf16 is storage: what comes out is the f32 result, rounded.
TEST(ShortStorage, IsComputedInF32) {
  const Inputs x = random_inputs(70, 1.0);
  const auto narrow = [](const at::Tensor& t) { return t.to(at::kBFloat16); };
  const auto wide = [&](const at::Tensor& t) { return narrow(t).to(at::kFloat); };
  LinearOptions options;
  options.causal = true;
  at::Tensor q = narrow(x.q).set_requires_grad(true);
  const auto got = linear_attention_stateful(q, narrow(x.k), narrow(x.v), {}, options);
  const auto want =
      linear_attention_stateful(wide(x.q), wide(x.k), wide(x.v), {}, options);
  EXPECT_EQ(got.out.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(got.out.detach().equal(want.out.to(at::kBFloat16)));
  EXPECT_EQ(got.state.s.scalar_type(), at::kFloat);
  const auto d_q = torch::autograd::grad({got.out.sum()}, {q})[0];
  EXPECT_EQ(d_q.scalar_type(), at::kBFloat16);
  EXPECT_GT(testing::largest(d_q), 0.0);

  const LinearState state{at::zeros({2, 3, 9, 6}), at::zeros({2, 3, 9})};
  const auto row = [&](const at::Tensor& t) { return narrow(t).select(2, 0); };
  const at::Tensor step =
      linear_attention_step(row(x.q), row(x.k), row(x.v), state, {});
  EXPECT_EQ(step.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(step.equal(got.out.detach().select(2, 0)));
}

}  // namespace
}  // namespace lagwise::ops
