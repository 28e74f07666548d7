// Linear attention at the edges: empty axes and rows with nothing to attend to
// give zeros or empty tensors, never NaN, and finite gradients.

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lagwise/ops/linear_attention.h"
#include "lagwise/ops/testing/linear_outcome.h"
#include "lagwise/ops/testing/linear_problem.h"
#include "lagwise/ops/testing/linear_reference.h"

namespace lagwise::ops {
namespace {

using testing::Outcome;
using testing::Problem;
using testing::Shape;

// Shapes in which every subset of the axes B, H, N, M, D, E is empty.
std::vector<Shape> shapes_with_empty_axes(bool causal) {
  std::vector<Shape> shapes;
  for (int bits = 0; bits < 64; ++bits) {
    const auto size = [&](int axis, int64_t full) {
      return (bits >> axis & 1) != 0 ? int64_t{0} : full;
    };
    const int64_t n = size(0, 3), m = causal ? n : size(1, 4);
    shapes.push_back({size(2, 2), size(3, 2), n, m, size(4, 3), size(5, 2), 3});
  }
  return shapes;
}

std::string describe(const Shape& x) {
  return "B " + std::to_string(x.batch) + " H " + std::to_string(x.heads) + " N " +
         std::to_string(x.n) + " M " + std::to_string(x.m) + " D " +
         std::to_string(x.d) + " E " + std::to_string(x.e);
}

void expect_shapes_to_match_the_definition(const LinearOptions& options, int decay_axes,
                                           bool state) {
  for (const Shape& shape : shapes_with_empty_axes(options.causal)) {
    SCOPED_TRACE(describe(shape) + " " + options.denominator + " decay axes " +
                 std::to_string(decay_axes) + (state ? " from a state" : ""));
    const Problem p = testing::random_problem(shape, options, decay_axes, state);
    testing::expect_close(testing::run(linear_attention_stateful, p),
                          testing::run(reference::linear_attention, p), 1e-12);
  }
}

TEST(LinearAttentionShapes, AnyAxisMayBeEmpty) {
  for (const bool causal : {true, false}) {
    for (const char* denominator : {"same", "separate", "none"}) {
      LinearOptions options;
      options.causal = causal;
      options.denominator = denominator;
      options.feature_map = "elu1";
      for (const bool state : {false, true}) {
        expect_shapes_to_match_the_definition(options, 0, state);
        if (causal) expect_shapes_to_match_the_definition(options, 1, state);
        if (causal) expect_shapes_to_match_the_definition(options, 2, state);
      }
    }
  }
}

void expect_finite(const Outcome& outcome) {
  for (const testing::Result& x : outcome) {
    ASSERT_TRUE(x.value.defined()) << x.name;
    EXPECT_TRUE(x.value.isfinite().all().item<bool>()) << x.name;
  }
}

LinearOptions without_eps(bool causal, const char* eps_mode, double eps = 0) {
  LinearOptions options;
  options.causal = causal;
  options.feature_map = "relu:offset=0";
  options.eps = eps;
  options.eps_mode = eps_mode;
  return options;
}

TEST(LinearAttentionShapes, QueriesWithoutKeysGiveZeros) {
  for (const char* mode : {"add", "clamp"}) {
    const Shape shape{2, 2, 5, 0, 3, 4, 3};
    const Problem p =
        testing::random_problem(shape, without_eps(false, mode), 0, false);
    const Outcome outcome = testing::run(linear_attention_stateful, p);
    expect_finite(outcome);
    EXPECT_EQ(testing::largest(outcome[0].value), 0.0);
  }
}

TEST(LinearAttentionShapes, RowsWhoseFeaturesAreAllZeroGiveZeros) {
  for (const bool causal : {true, false}) {
    for (const char* mode : {"add", "clamp"}) {
      Problem p = testing::random_problem({1, 2, 70, 70, 5, 4, 3},
                                          without_eps(causal, mode), 0, false);
      p.q.slice(2, 3, 9).fill_(-1);   // these queries see nothing
      p.k.slice(2, 0, 40).fill_(-1);  // and nobody sees these keys
      for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
        const Outcome outcome =
            testing::run(linear_attention_stateful, testing::cast(p, type));
        expect_finite(outcome);
        const at::Tensor& out = outcome[0].value;
        EXPECT_EQ(testing::largest(out.slice(2, 3, 9)), 0.0);
        if (causal) {
          EXPECT_EQ(testing::largest(out.slice(2, 0, 40)), 0.0);
        }
        EXPECT_GT(testing::largest(out.slice(2, 45, 70)), 0.0);
        testing::expect_close(testing::run(linear_attention_stateful, p),
                              testing::run(reference::linear_attention, p), 1e-10);
      }
    }
  }
}

TEST(LinearAttentionShapes, ASeparateDenominatorOfZeroGivesZeros) {
  for (const bool causal : {true, false}) {
    LinearOptions options = without_eps(causal, "add");
    options.denominator = "separate";
    Problem p = testing::random_problem({1, 2, 40, 40, 5, 4, 3}, options, 0, false);
    p.options.q_norm.slice(2, 10, 20).fill_(-1);
    const Outcome outcome = testing::run(linear_attention_stateful, p);
    expect_finite(outcome);
    EXPECT_EQ(testing::largest(outcome[0].value.slice(2, 10, 20)), 0.0);
    testing::expect_close(outcome, testing::run(reference::linear_attention, p), 1e-10);
  }
}

TEST(LinearAttentionShapes, AStepThatSeesNothingGivesZeros) {
  const LinearOptions options = without_eps(true, "add");
  const at::Tensor x = at::full({1, 2, 3}, -1.0, at::kDouble);
  const at::Tensor v = at::full({1, 2, 4}, 2.0, at::kDouble);
  const LinearState state = {at::zeros({1, 2, 3, 4}, at::kDouble),
                             at::zeros({1, 2, 3}, at::kDouble)};
  const at::Tensor out = linear_attention_step(x, x, v, state, options);
  EXPECT_TRUE(out.equal(at::zeros({1, 2, 4}, at::kDouble)));
}

TEST(LinearAttentionShapes, AStepWorksWithAnyEmptyAxis) {
  for (const Shape& shape : shapes_with_empty_axes(true)) {
    SCOPED_TRACE(describe(shape));
    const auto zeros = [](at::IntArrayRef sizes) {
      return at::zeros(sizes, at::kFloat);
    };
    const at::Tensor x = zeros({shape.batch, shape.heads, shape.d});
    const at::Tensor v = zeros({shape.batch, shape.heads, shape.e});
    const LinearState state = {zeros({shape.batch, shape.heads, shape.d, shape.e}),
                               zeros({shape.batch, shape.heads, shape.d})};
    LinearOptions options;
    options.causal = true;
    EXPECT_TRUE(linear_attention_step(x, x, v, state, options).equal(v));
  }
}

TEST(LinearAttentionShapes, TheResultIsDenseAndSharesNothingWithItsInputs) {
  const Problem p =
      testing::random_problem({}, without_eps(true, "add", 1e-6), 0, true);
  const LinearResult r = linear_attention_stateful(p.q, p.k, p.v, p.from, p.options);
  const at::Tensor before = p.from.s.clone();
  r.state.s.fill_(7);
  r.out.fill_(7);
  EXPECT_TRUE(p.from.s.equal(before));
  EXPECT_TRUE(r.out.is_contiguous());
}

}  // namespace
}  // namespace lagwise::ops
