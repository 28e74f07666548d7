// What linear attention promises with every feature map of the registry (the numbers
// are those of docs/architecture.md): a new map is under test from the moment it is
// registered.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <string>
#include <vector>

#include "lagwise/attention/linear.h"
#include "lagwise/ops/linear/linear_layout.h"
#include "lagwise/ops/testing/linear_outcome.h"

namespace lagwise {
namespace {

using at::Tensor;
using ops::testing::distance;
using ops::testing::largest;
using Side = FeatureMap::Side;

constexpr int64_t kHorizon = 1024;

/// Positive maps divide; signed ones are followed by a norm.
std::string text_of(const FeatureMapRow& row) {
  const bool positive = make_feature_map(row.name)->positive();
  return "linear:qk_bias=true,map=" + std::string(row.name) +
         (positive ? "" : ",denominator=none,norm=rms_head");
}

struct Rows {
  Tensor q, k, v;  // [B, H, N, D], [B, H, M, D], [B, H, M, E]
  Rows slice(int64_t begin, int64_t end) const {
    return {q.slice(2, begin, end), k.slice(2, begin, end), v.slice(2, begin, end)};
  }
};

Rows random_rows(int64_t n, int64_t m, int64_t d, int64_t e,
                 at::ScalarType type = at::kDouble) {
  ops::testing::Random random(7);
  return {random.normal({2, 3, n, d}).to(type), random.normal({2, 3, m, d}).to(type),
          random.normal({2, 3, m, e}).to(type)};
}

/// One layer as nn/ will run it, without an encoding.
struct Layer {
  Layer(const std::string& text, const Rows& rows)
      : attention(text,
                  {.heads = 3, .dim = rows.q.size(3), .value_dim = rows.v.size(3)}),
        directions(attention.map().directions({.seed = 5}, 0, rows.q.size(3),
                                              rows.q.options())) {
    for (auto& [name, handle] : attention.parameters())
      handle.set_data(handle.to(rows.q.scalar_type()));
  }

  LinearInputs inputs(const Rows& x, const Placement& at) const {
    const auto side = [&](const Tensor& rows, Side side) {
      return attention.features(attention.add_bias(rows, side), side, at, directions);
    };
    return {.q = side(x.q, Side::query),
            .k = side(x.k, Side::key),
            .v = x.v,
            .causal = at.causal};
  }
  Tensor run(const Rows& x, bool causal = true) const {
    return attention.attend(inputs(x, {.causal = causal, .horizon = kHorizon}));
  }

  LinearAttention attention;
  Tensor directions;
};

Placement from(int64_t start) {
  return {.query_start = start, .key_start = start, .horizon = kHorizon};
}

class FeatureMapContract : public ::testing::TestWithParam<FeatureMapRow> {
 protected:
  std::string text() const { return text_of(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Registry, FeatureMapContract,
                         ::testing::ValuesIn(feature_maps()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(FeatureMaps, AreAllRegistered) {
  std::vector<std::string> names;
  for (const auto& row : feature_maps()) names.emplace_back(row.name);
  EXPECT_THAT(names, ::testing::IsSupersetOf({"cosformer", "elu1", "exp", "favor",
                                              "favor_relu", "favor_two_sided", "none",
                                              "relu", "relu_squared", "silu"}));
}

// 1. Full = chunked = step by step.
TEST_P(FeatureMapContract, ChunksAndStepsEqualTheWhole) {
  const at::NoGradGuard no_graph;
  constexpr int64_t kLong = 301;
  for (auto type : {at::kDouble, at::kFloat}) {
    const double tolerance = type == at::kDouble ? 1e-10 : 1e-5;
    const Rows x = random_rows(kLong, kLong, 6, 5, type);
    const Layer layer(text(), x);
    const Tensor whole = layer.run(x);
    for (int64_t chunk : {1, 16, 100, 300}) {
      ops::LinearState state;
      for (int64_t at = 0; at < kLong; at += chunk) {
        const int64_t end = std::min(at + chunk, kLong);
        const auto part =
            layer.attention.attend(layer.inputs(x.slice(at, end), from(at)), state);
        EXPECT_LE(distance(part.out, whole.slice(2, at, end)),
                  tolerance * largest(whole))
            << chunk << " at " << at;
        state = part.state;
      }
    }
    ops::LinearState state;
    for (int64_t at = 0; at < kLong; ++at) {
      const Tensor step =
          layer.attention.step(layer.inputs(x.slice(at, at + 1), from(at)), state);
      ASSERT_LE(distance(step, whole.slice(2, at, at + 1)), tolerance * largest(whole))
          << at;
    }
  }
}

// 2. Causal means causal, whatever the future holds.
TEST_P(FeatureMapContract, TheFutureChangesNothing) {
  const Rows x = random_rows(40, 40, 6, 5);
  const Layer layer(text(), x);
  const Tensor before = layer.run(x).slice(2, 0, 25);
  for (double value : {1e3, std::numeric_limits<double>::quiet_NaN()}) {
    Rows other = {x.q.clone(), x.k.clone(), x.v.clone()};
    for (const Tensor& t : {other.q, other.k, other.v}) t.slice(2, 25).fill_(value);
    EXPECT_TRUE(layer.run(other).slice(2, 0, 25).equal(before)) << value;
  }
}

// 4. Gradients reach every input and parameter and equal finite differences.
TEST_P(FeatureMapContract, GradientsAreFiniteDifferences) {
  for (bool causal : {true, false}) {
    Rows x = random_rows(19, causal ? 19 : 23, 6, 5);
    const Layer layer(text(), x);
    const Tensor ct = ops::testing::Random(9).normal({2, 3, 19, 5});
    const auto loss = [&] { return (layer.run(x, causal) * ct).sum(); };
    std::vector<std::pair<std::string, Tensor>> leaves = layer.attention.parameters();
    for (auto [name, t] : {std::pair{"q", &x.q}, {"k", &x.k}, {"v", &x.v}}) {
      t->set_requires_grad(true);
      leaves.emplace_back(name, *t);
    }
    std::vector<Tensor> all;
    for (auto& [name, t] : leaves) all.push_back(t);
    const auto grads = torch::autograd::grad({loss()}, all);
    const at::NoGradGuard no_graph;
    uint64_t seed = 20;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Tensor along = ops::testing::Random(seed++).normal(all[i].sizes());
      const double step = 1e-6;
      all[i].add_(along, step);
      const double up = loss().item<double>();
      all[i].add_(along, -2 * step);
      const double down = loss().item<double>();
      all[i].add_(along, step);
      const double want = (up - down) / (2 * step);
      const double got = (grads[i] * along).sum().item<double>();
      const double size = (grads[i] * along).norm().item<double>();
      EXPECT_GT(size, 0) << leaves[i].first;
      EXPECT_NEAR(got, want, 1e-6 * (size + std::abs(want))) << leaves[i].first;
    }
  }
}

// 5. Any shape and any strides.
TEST_P(FeatureMapContract, AnyShapeGivesItsRows) {
  for (auto [n, m, d, e] : {std::array<int64_t, 4>{0, 0, 4, 3},
                            {1, 1, 1, 1},
                            {17, 17, 5, 3},
                            {5, 0, 4, 3},
                            {3, 31, 7, 2}}) {
    const Rows x = random_rows(n, m, d, e);
    const Layer layer(text(), x);
    const Tensor out = layer.run(x, n == m);
    ASSERT_EQ(out.sizes(), at::IntArrayRef({2, 3, n, e}));
    EXPECT_FALSE(out.isnan().any().item<bool>());
    // 6. Rows with nothing to attend to give zeros.
    if (m == 0) {
      EXPECT_TRUE(out.eq(0).all().item<bool>());
    }
  }
}

TEST_P(FeatureMapContract, StridesAreHonoured) {
  const Rows x = random_rows(33, 33, 6, 5);
  const Layer layer(text(), x);
  const Tensor want = layer.run(x);
  for (const auto lay :
       {ops::testing::rows_first, ops::testing::padded, ops::testing::inner_step})
    EXPECT_LE(distance(layer.run({lay(x.q), lay(x.k), lay(x.v)}), want), 1e-13);
}

// 6. No NaN: tokens of zeros, and large ones.
TEST_P(FeatureMapContract, NoNanFromZerosOrLargeNumbers) {
  for (double size : {0.0, 30.0}) {
    Rows x = random_rows(20, 20, 6, 5);
    const Layer layer(text(), x);
    Rows at = {x.q * size, x.k * size, x.v};
    for (Tensor* t : {&at.q, &at.k}) t->set_requires_grad(true);
    const Tensor out = layer.run(at);
    EXPECT_FALSE(out.isnan().any().item<bool>()) << size;
    for (const Tensor& grad : torch::autograd::grad({out.sum()}, {at.q, at.k}))
      EXPECT_FALSE(grad.isnan().any().item<bool>()) << size;
  }
}

// 7. The same bits for any number of threads.
TEST_P(FeatureMapContract, ThreadsDoNotChangeABit) {
  Rows x = random_rows(700, 700, 16, 32, at::kFloat);
  for (Tensor* t : {&x.q, &x.k, &x.v}) t->set_requires_grad(true);
  const Layer layer(text(), x);
  const int before = at::get_num_threads();
  std::vector<Tensor> first;
  for (int threads : {1, 2, 4}) {
    at::set_num_threads(threads);
    const Tensor out = layer.run(x);
    std::vector<Tensor> all =
        torch::autograd::grad({out.square().sum()}, {x.q, x.k, x.v});
    all.push_back(out);
    for (size_t i = 0; i < first.size(); ++i)
      EXPECT_TRUE(all[i].equal(first[i])) << threads << " threads, tensor " << i;
    if (first.empty()) first = all;
  }
  at::set_num_threads(before);
}

TEST_P(FeatureMapContract, UnknownOptionsAreRefusedByName) {
  const std::string bad = std::string(GetParam().name) + ":no_such_option=1";
  try {
    make_feature_map(bad);
    FAIL() << "accepted " << bad;
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("no_such_option"), std::string::npos);
  }
  for (const auto& option : feature_map_options(GetParam()))
    EXPECT_FALSE(option.key.empty() || option.expected.empty());
}

/// What the operator fuses is what the map computes.
TEST_P(FeatureMapContract, AFusedMapEqualsFeaturesThenAttend) {
  const Rows x = random_rows(33, 33, 32, 5);
  const Layer layer(text(), x);
  if (!layer.attention.fuses()) return;
  Placement at;
  at.horizon = 64;
  const Tensor want = layer.attention.attend(layer.inputs(x, at));
  const Tensor got =
      layer.attention.attend({.q = {layer.attention.add_bias(x.q, Side::query)},
                              .k = {layer.attention.add_bias(x.k, Side::key)},
                              .v = x.v,
                              .mapped = false});
  EXPECT_LE(distance(got, want), 1e-12 * largest(want));
}

TEST_P(FeatureMapContract, OnlyAFusedMapTakesRowsThatWaitForIt) {
  const Rows x = random_rows(7, 7, 6, 5);
  const Layer layer(text(), x);
  const LinearInputs raw = {.q = {x.q}, .k = {x.k}, .v = x.v, .mapped = false};
  if (layer.attention.fuses()) {
    EXPECT_EQ(layer.attention.attend(raw).sizes(), x.v.sizes());
  } else {
    EXPECT_THROW(layer.attention.attend(raw), std::invalid_argument);
  }
}

}  // namespace
}  // namespace lagwise
