// Linear attention on examples small enough to check by hand, the reference
// itself, and the step.

#include "lagwise/ops/linear_attention.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "bench/torch_linear.h"
#include "lagwise/ops/testing/linear_outcome.h"
#include "lagwise/ops/testing/linear_problem.h"
#include "lagwise/ops/testing/linear_reference.h"

namespace lagwise::ops {
namespace {

using testing::Problem;

// One head of width 1: numbers down the rows.
at::Tensor column(const std::vector<double>& rows) {
  return at::tensor(rows, at::kDouble).view({1, 1, -1, 1});
}

void expect_rows(const at::Tensor& out, const std::vector<double>& rows) {
  ASSERT_EQ(out.numel(), static_cast<int64_t>(rows.size()));
  const at::Tensor flat = out.reshape({-1});
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_NEAR(flat[static_cast<int64_t>(i)].item<double>(), rows[i], 1e-14);
  }
}

LinearOptions exact_causal(const char* denominator) {
  LinearOptions options;
  options.causal = true;
  options.denominator = denominator;
  options.eps = 0;
  return options;
}

TEST(LinearAttention, AddsUpThePast) {
  const at::Tensor q = column({1, 2, 3}), k = column({1, 10, 100}),
                   v = column({5, 6, 7});
  // 1 (1 5);  2 (1 5 + 10 6);  3 (1 5 + 10 6 + 100 7)
  expect_rows(linear_attention(q, k, v, exact_causal("none")), {5, 130, 2295});
}

TEST(LinearAttention, DividesByTheSumOfTheWeights) {
  const at::Tensor q = column({1, 2, 3}), k = column({1, 3, 4}), v = column({5, 9, 1});
  // The mean of the past values with weights k; the query cancels.
  expect_rows(linear_attention(q, k, v, exact_causal("same")), {5, 32.0 / 4, 36.0 / 8});
}

TEST(LinearAttention, FadesThePastByOneFactorPerStep) {
  LinearOptions options = exact_causal("none");
  options.decay = at::tensor({std::log(0.5)}, at::kDouble);
  const at::Tensor one = column({1, 1, 1}), v = column({8, 4, 2});
  expect_rows(linear_attention(one, one, v, options), {8, 4 + 4, 2 + 2 + 2});
}

TEST(LinearAttention, FadesAGivenStateBeforeTheFirstRow) {
  LinearOptions options = exact_causal("none");
  options.decay = at::tensor({std::log(0.5)}, at::kDouble);
  const at::Tensor one = column({1, 1}), v = column({0, 0});
  const LinearState from = {column({16}), at::zeros({1, 1, 0}, at::kDouble)};
  const LinearResult r = linear_attention_stateful(one, one, v, from, options);
  expect_rows(r.out, {8, 4});
  expect_rows(r.state.s, {4});
}

TEST(LinearAttention, SeesEveryKeyWhenFull) {
  LinearOptions options;
  options.denominator = "none";
  const at::Tensor q = column({1, 2}), k = column({1, 10, 100}), v = column({5, 6, 7});
  expect_rows(linear_attention(q, k, v, options), {765, 1530});
}

TEST(LinearAttention, AddsEpsToTheDenominatorOrHoldsItAbove) {
  const at::Tensor one = column({1, 1, 1}), v = column({6, 6, 6});
  LinearOptions options = exact_causal("same");
  options.eps = 2;
  expect_rows(linear_attention(one, one, v, options), {2, 3, 18.0 / 5});
  options.eps_mode = "clamp";
  expect_rows(linear_attention(one, one, v, options), {3, 6, 6});
}

TEST(LinearAttention, DividesBySeparateFeaturesWhereAsked) {
  LinearOptions options = exact_causal("separate");
  options.q_norm = column({1, 1});
  options.k_norm = column({2, 6});
  const at::Tensor q = column({1, -1}), k = column({1, 3}), v = column({4, 4});
  expect_rows(linear_attention(q, k, v, options), {2, -2});
}

TEST(LinearAttention, AppliesItsFeatureMapToQueriesAndKeys) {
  LinearOptions options = exact_causal("none");
  const at::Tensor q = column({2, -1}), k = column({-1, 3}), v = column({1, 0});
  options.feature_map = "elu1";
  expect_rows(linear_attention(q, k, v, options), {3 * std::exp(-1), std::exp(-2)});
  options.feature_map = "relu";
  expect_rows(linear_attention(q, k, v, options), {2.001 * 0.001, 1e-6});
  options.feature_map = "relu:offset=0.5";
  expect_rows(linear_attention(q, k, v, options), {2.5 * 0.5, 0.25});
}

TEST(LinearAttention, HandsOnAStateOfTheDocumentedShape) {
  for (const char* denominator : {"same", "separate", "none"}) {
    LinearOptions options = exact_causal(denominator);
    const Problem p = testing::random_problem({2, 3, 4, 4, 6, 7, 5}, options, 0, false);
    const LinearResult r = linear_attention_stateful(p.q, p.k, p.v, {}, p.options);
    EXPECT_EQ(r.state.s.sizes(), at::IntArrayRef({2, 3, 6, 7}));
    EXPECT_EQ(r.state.z.sizes(), p.grad_z.sizes());
  }
}

TEST(LinearAttention, StepsAdvanceTheirStateInPlace) {
  LinearOptions options = exact_causal("same");
  const LinearState state = {at::zeros({1, 1, 1, 1}, at::kDouble),
                             at::zeros({1, 1, 1}, at::kDouble)};
  const at::Tensor k = at::tensor({3.0}, at::kDouble).view({1, 1, 1});
  const at::Tensor v = at::tensor({5.0}, at::kDouble).view({1, 1, 1});
  expect_rows(linear_attention_step(k, k, v, state, options), {5});
  expect_rows(state.s, {15});
  expect_rows(state.z, {3});
}

TEST(LinearAttention, StepsHonourTheStridesOfTheirState) {
  LinearOptions options = exact_causal("same");
  const Problem p = testing::random_problem({2, 3, 1, 1, 9, 5, 5}, options, 2, true);
  const auto step = [&](const LinearState& state) {
    return linear_attention_step(p.q.select(2, 0), p.k.select(2, 0), p.v.select(2, 0),
                                 state, p.options);
  };
  const LinearState dense = {p.from.s.clone(), p.from.z.clone()};
  // The same numbers with rows and columns swapped in memory.
  const LinearState strided = {p.from.s.transpose(2, 3).contiguous().transpose(2, 3),
                               p.from.z.transpose(0, 2).contiguous().transpose(0, 2)};
  EXPECT_TRUE(step(strided).allclose(step(dense), 1e-12));
  EXPECT_TRUE(strided.s.allclose(dense.s, 1e-12));
  EXPECT_TRUE(strided.z.allclose(dense.z, 1e-12));
}

TEST(TorchLinearBaseline, StepsAgreeWithTheOperator) {
  LinearOptions options = exact_causal("same");
  options.feature_map = "elu1";
  const Problem p = testing::random_problem({2, 3, 1, 1, 9, 5, 5}, options, 1, true);
  const auto row = [](const at::Tensor& t) { return t.select(2, 0); };
  const LinearState ours = {p.from.s.clone(), p.from.z.clone()};
  const LinearState torch = {p.from.s.clone(), p.from.z.clone()};
  const at::Tensor out =
      linear_attention_step(row(p.q), row(p.k), row(p.v), ours, p.options);
  EXPECT_TRUE(out.allclose(
      bench::torch_step(row(p.q), row(p.k), row(p.v), torch, p.options), 1e-12));
  EXPECT_TRUE(ours.s.allclose(torch.s, 1e-12));
}

// The reference has two forms; each is the definition, so they must agree.
TEST(LinearReference, ItsWeightsAndItsRecurrenceAgree) {
  LinearOptions options = exact_causal("none");
  for (const int decay_axes : {1, 2}) {
    const Problem p =
        testing::random_problem({2, 2, 40, 40, 6, 5, 5}, options, decay_axes, true);
    const at::Tensor log_g = reference::log_factor(p.options.decay, p.v);
    const auto [num, s] = reference::by_weights(p.q, p.k, p.v, p.from.s, log_g, true);
    const auto [num2, s2] = reference::by_recurrence(p.q, p.k, p.v, p.from.s, log_g);
    EXPECT_LE(testing::distance(num, num2), 1e-12 * testing::largest(num));
    EXPECT_LE(testing::distance(s, s2), 1e-12 * testing::largest(s));
  }
}

}  // namespace
}  // namespace lagwise::ops
