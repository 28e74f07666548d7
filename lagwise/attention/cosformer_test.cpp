#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>

#include "lagwise/attention/feature_map.h"
#include "lagwise/ops/testing/linear_problem.h"

namespace lagwise {
namespace {

using at::Tensor;
using Side = FeatureMap::Side;

Tensor normal(at::IntArrayRef shape, uint64_t seed) {
  return ops::testing::Random(seed).normal(shape);
}

Tensor scores(const FeatureMap& map, const Tensor& q, const Tensor& k,
              const Placement& at) {
  return at::matmul(map.features(q, Side::query, {}, at).x,
                    map.features(k, Side::key, {}, at).x.transpose(-1, -2));
}

/// relu(q_i) . relu(k_j) cos(pi (i - j) / (2 M)), with positions [N] and [M].
Tensor by_definition(const Tensor& q, const Tensor& k, const Tensor& i, const Tensor& j,
                     double horizon) {
  const Tensor lag = (i.unsqueeze(-1) - j.unsqueeze(-2)).to(at::kDouble);
  return at::matmul(at::relu(q), at::relu(k).transpose(-1, -2)) *
         (lag * (std::numbers::pi / (2 * horizon))).cos();
}

TEST(CosFormer, WeighsByACosineOfTheLag) {
  const auto map = make_feature_map("cosformer:horizon=40");
  const Tensor q = normal({2, 3, 9, 5}, 1), k = normal({2, 3, 12, 5}, 2);
  const Tensor want = by_definition(q, k, at::arange(20, 29), at::arange(28, 40), 40.0);
  const Tensor got = scores(*map, q, k, {.query_start = 20, .key_start = 28});
  EXPECT_LE((got - want).abs().max().item<double>(), 1e-12);
  EXPECT_GE(got.min().item<double>(), 0);
}

TEST(CosFormer, TakesPositionsPerRow) {
  const auto map = make_feature_map("cosformer:horizon=100");
  const Tensor q = normal({2, 1, 3, 5}, 1), k = normal({2, 1, 3, 5}, 2);
  const Tensor line = at::tensor({0, 17, 99});
  const Tensor batch = at::stack({line, at::tensor({5, 6, 8})});
  for (const Tensor& where : {line, batch}) {
    const Tensor at = where.dim() == 2 ? where.unsqueeze(1) : where;
    const Tensor got = scores(*map, q, k, {.query_at = where, .key_at = where});
    EXPECT_LE((got - by_definition(q, k, at, at, 100)).abs().max().item<double>(),
              1e-12);
  }
}

TEST(CosFormer, TakesTheHorizonOfThePlacementUnlessTold) {
  const Tensor q = normal({1, 1, 3, 5}, 1);
  const auto map = make_feature_map("cosformer");
  EXPECT_TRUE(scores(*map, q, q, {.horizon = 7})
                  .equal(scores(*make_feature_map("cosformer:horizon=7"), q, q, {})));
}

void expect_refused(const FeatureMap& map, const Placement& at,
                    const std::string& words) {
  try {
    map.features(normal({1, 1, 3, 4}, 1), Side::query, {}, at);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }
}

TEST(CosFormer, RefusesPositionsPastItsHorizon) {
  const auto map = make_feature_map("cosformer:horizon=10");
  map->features(normal({1, 1, 3, 4}, 1), Side::query, {}, {.query_start = 7});
  expect_refused(*map, {.query_start = 8}, "cosformer: expected positions");
  expect_refused(*map, {.query_at = at::tensor({0, 10, 3})}, "horizon 10, got 10");
  expect_refused(*map, {.query_at = at::tensor({0, -1, 3})}, "got -1");
  expect_refused(*map, {.query_at = at::tensor({0, 1})}, "[N] or [B, N]");
  expect_refused(*make_feature_map("cosformer"), {}, "expected a horizon");
  EXPECT_THROW(make_feature_map("cosformer:horizon=-1"), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
