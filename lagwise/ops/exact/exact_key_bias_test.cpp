// A bias per key in exact attention: what hides a key, steps, and large numbers. (The
// pairs of exact_attention_pairs_test.cpp hold it to the definition.)

#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <limits>

#include "lagwise/ops/exact_step.h"
#include "lagwise/ops/testing/exact_problem.h"
#include "lagwise/ops/testing/exact_reference.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using testing::ExactProblem;

constexpr double kNever = -std::numeric_limits<double>::infinity();

ExactProblem biased_problem(bool causal, int64_t rows = 40) {
  ExactOptions options;
  options.causal = causal;
  testing::ExactShape shape{.n = rows, .m = rows};
  shape.key_bias = true;
  return testing::random_exact(shape, options);
}

TEST(ExactKeyBias, OfMinusInfinityHidesAKey) {
  ExactProblem p = biased_problem(false), without = p;
  p.options.key_bias = p.options.key_bias.clone();
  p.options.key_bias.select(2, 7).fill_(kNever);
  const auto less = [](const Tensor& x) {
    return at::cat({x.slice(2, 0, 7), x.slice(2, 8)}, 2);
  };
  without.options.query_start = 0;  // nothing is causal here
  without.k = less(p.k), without.v = less(p.v);
  without.options.key_bias = less(p.options.key_bias);
  const auto ours = testing::run(exact_attention, p);
  const auto plain = testing::run(exact_attention, without);
  for (size_t i = 0; i < ours.size(); ++i) {
    const Tensor& all = ours[i].value;
    const bool by_key = all.size(2) > plain[i].value.size(2);
    EXPECT_LE(testing::distance(by_key ? less(all) : all, plain[i].value), 1e-13)
        << ours[i].name;
    if (by_key) {
      EXPECT_EQ(testing::largest(all.select(2, 7)), 0.0);
    }
  }
}

TEST(ExactKeyBias, ThatHidesAllKeysGivesZerosAndNoGradient) {
  ExactProblem p = biased_problem(true);
  p.options.key_bias = p.options.key_bias.clone();
  p.options.key_bias.slice(2, 0, 5).fill_(kNever);
  const auto ours = testing::run(exact_attention, p);
  EXPECT_EQ(testing::largest(ours[0].value.slice(2, 0, 5)), 0.0);
  for (const auto& x : ours) EXPECT_FALSE(x.value.isnan().any().item<bool>()) << x.name;
}

TEST(ExactKeyBias, OfAStepIsThatOfTheLastRow) {
  for (const auto type : {at::kDouble, at::kFloat}) {
    const ExactProblem p = testing::cast(biased_problem(true, 300), type);
    ExactStepOptions options;
    options.key_bias = p.options.key_bias;
    const Tensor step = exact_attention_step(p.q.select(2, 299), p.k, p.v, options);
    const Tensor rows = exact_attention(p.q, p.k, p.v, p.options);
    EXPECT_LE(testing::distance(step, rows.select(2, 299)),
              type == at::kDouble ? 1e-13 : 1e-5);
  }
}

/// Far along a sequence a forget gate's biases are large and their differences small:
/// whole numbers beyond 2^20 leave three digits behind the point of an f32.
TEST(ExactKeyBias, LosesNothingWhereAllAreLarge) {
  ExactProblem p = testing::cast(biased_problem(true), at::kFloat), far = p;
  p.options.key_bias = p.options.key_bias.round();
  far.options.key_bias = p.options.key_bias + 0x1p20;
  const Tensor near = exact_attention(p.q, p.k, p.v, p.options);
  EXPECT_LE(testing::distance(exact_attention(far.q, far.k, far.v, far.options), near),
            2e-6);
}

TEST(ExactKeyBias, OfAnotherShapeIsRefused) {
  ExactProblem p = biased_problem(true);
  p.options.key_bias = p.options.key_bias.slice(2, 0, 39);
  EXPECT_THROW(exact_attention(p.q, p.k, p.v, p.options), c10::Error);
  ExactStepOptions options;
  options.key_bias = p.options.key_bias;
  EXPECT_THROW(exact_attention_step(p.q.select(2, 0), p.k, p.v, options), c10::Error);
}

}  // namespace
}  // namespace lagwise::ops
