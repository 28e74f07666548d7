// Gradients of linear attention against finite differences of its own forward
// pass, in double: they need no second implementation to be right.

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "lagwise/ops/linear_attention.h"
#include "lagwise/ops/testing/linear_outcome.h"
#include "lagwise/ops/testing/linear_problem.h"

namespace lagwise::ops {
namespace {

using testing::Outcome;
using testing::Problem;
using testing::Shape;

// <out, grad_out> + <s, grad_s> + <z, grad_z>
double loss(const Problem& p) {
  const LinearResult r = linear_attention_stateful(p.q, p.k, p.v, p.from, p.options);
  const at::Tensor total = (r.out * p.grad_out).sum() + (r.state.s * p.grad_s).sum() +
                           (r.state.z * p.grad_z).sum();
  return total.item<double>();
}

// The loss after a step of `length` along `direction` on input number `which`.
double loss_moved(Problem p, size_t which, const at::Tensor& direction, double length) {
  at::Tensor& x = *testing::inputs(p)[which].tensor;
  x = x + direction * length;
  return loss(p);
}

// For each input x and a random direction u: d/dt loss(x + t u) at t = 0, by
// central differences, equals <dx, u>.
void expect_gradients_to_match_differences(const Problem& problem) {
  Problem p = problem;
  const Outcome outcome = testing::run(linear_attention_stateful, p);
  const auto names = testing::inputs(p);
  const size_t first_gradient = outcome.size() - names.size();
  testing::Random random(7);
  for (size_t i = 0; i < names.size(); ++i) {
    const at::Tensor& gradient = outcome[first_gradient + i].value;
    if (gradient.numel() == 0) continue;
    const at::Tensor direction = random.normal(gradient.sizes());
    const double h = 1e-5;
    const double slope =
        (loss_moved(p, i, direction, h) - loss_moved(p, i, direction, -h)) / (2 * h);
    const double predicted = (gradient * direction).sum().item<double>();
    // |dx| |u| is the size the product would have if the two were parallel.
    const double scale =
        (gradient.norm() * direction.norm()).item<double>() + std::abs(slope);
    EXPECT_NEAR(slope, predicted, 1e-7 * scale + 1e-8) << "d" << names[i].name;
  }
}

TEST(LinearAttentionGradient, EqualsFiniteDifferencesForEveryInputWhenCausal) {
  for (const char* denominator : {"same", "separate", "none"}) {
    for (const char* map : {"none", "elu1", "relu:offset=0.01"}) {
      for (const int decay_axes : {0, 1, 2}) {
        SCOPED_TRACE(std::string(denominator) + " " + map + " decay axes " +
                     std::to_string(decay_axes));
        LinearOptions options;
        options.causal = true;
        options.denominator = denominator;
        options.feature_map = map;
        const Shape shape{2, 2, 45, 45, 6, 5, 4};
        expect_gradients_to_match_differences(
            testing::random_problem(shape, options, decay_axes, true));
      }
    }
  }
}

TEST(LinearAttentionGradient, EqualsFiniteDifferencesForEveryInputWhenFull) {
  for (const char* denominator : {"same", "separate", "none"}) {
    for (const char* map : {"none", "elu1", "relu:offset=0.01"}) {
      SCOPED_TRACE(std::string(denominator) + " " + map);
      LinearOptions options;
      options.denominator = denominator;
      options.feature_map = map;
      const Shape shape{2, 2, 37, 50, 6, 5, 4};
      expect_gradients_to_match_differences(
          testing::random_problem(shape, options, 0, true));
    }
  }
}

TEST(LinearAttentionGradient, EqualsFiniteDifferencesOnALongHead) {
  for (const int decay_axes : {0, 1, 2}) {
    LinearOptions options;
    options.causal = true;
    options.feature_map = "elu1";
    const Shape shape{1, 1, 4500, 4500, 16, 40, 4};
    expect_gradients_to_match_differences(
        testing::random_problem(shape, options, decay_axes, true));
  }
}

TEST(LinearAttentionGradient, EqualsFiniteDifferencesWhereEveryRowIsClamped) {
  LinearOptions options;
  options.causal = true;
  options.feature_map = "elu1";
  options.eps_mode = "clamp";
  options.eps = 1e4;  // no denominator comes near: out = num / eps
  Problem p = testing::random_problem({}, options, 1, false);
  p.grad_out = p.grad_out * 1e4;
  expect_gradients_to_match_differences(p);
}

// A decay of exp(-60) per step underflows within one chunk, and its inverse
// would overflow: nothing may form g^-n.
TEST(LinearAttentionGradient, StaysFiniteHoweverFastThePastFades) {
  for (const int decay_axes : {1, 2}) {
    for (const double log_factor : {-60.0, -1e4}) {
      LinearOptions options;
      options.causal = true;
      options.feature_map = "elu1";
      Problem p = testing::random_problem({}, options, decay_axes, true);
      p.options.decay = at::zeros(p.options.decay.sizes(), at::kDouble) + log_factor;
      for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
        const Outcome outcome =
            testing::run(linear_attention_stateful, testing::cast(p, type));
        for (const testing::Result& x : outcome) {
          EXPECT_TRUE(x.value.isfinite().all().item<bool>())
              << x.name << " with a log factor of " << log_factor;
        }
      }
    }
  }
}

TEST(LinearAttentionGradient, OfOneInputNeedsNoOther) {
  LinearOptions options;
  options.causal = true;
  options.feature_map = "elu1";
  options.denominator = "separate";
  Problem p = testing::random_problem({}, options, 1, true);
  const Outcome all = testing::run(linear_attention_stateful, p);
  size_t i = 3;  // out, s, z come first
  for (const testing::NamedTensor& x : testing::inputs(p)) {
    const at::Tensor given = *x.tensor;
    *x.tensor = given.detach().set_requires_grad(true);
    const LinearResult r = linear_attention_stateful(p.q, p.k, p.v, p.from, p.options);
    const at::Tensor alone = testing::backward(r, p, {*x.tensor})[0];
    EXPECT_TRUE(alone.allclose(all[i].value, 1e-12)) << all[i].name;
    *x.tensor = given;
    ++i;
  }
}

TEST(LinearAttentionGradient, ComesFromTheOutputAloneOrFromTheStateAlone) {
  LinearOptions options;
  options.causal = true;
  options.feature_map = "elu1";
  const Problem p = testing::random_problem({}, options, 2, true);
  const auto gradients = [&](double out, double s, double z) {
    Problem part = p;
    part.grad_out = p.grad_out * out;
    part.grad_s = p.grad_s * s;
    part.grad_z = p.grad_z * z;
    return testing::run(linear_attention_stateful, part);
  };
  const Outcome all = gradients(1, 1, 1), from_out = gradients(1, 0, 0);
  const Outcome from_s = gradients(0, 1, 0), from_z = gradients(0, 0, 1);
  for (size_t i = 3; i < all.size(); ++i) {
    const at::Tensor sum = from_out[i].value + from_s[i].value + from_z[i].value;
    EXPECT_LE(testing::distance(sum, all[i].value), 1e-12 * testing::largest(sum))
        << all[i].name;
  }
}

TEST(LinearAttentionGradient, RefusesToBeDifferentiatedTwice) {
  LinearOptions options;
  options.causal = true;
  Problem p = testing::random_problem({}, options, 0, false);
  p.q.set_requires_grad(true);
  const at::Tensor out = linear_attention(p.q, p.k, p.v, p.options);
  const auto first =
      torch::autograd::grad({out.pow(2).sum()}, {p.q}, {}, true, true, true);
  try {
    torch::autograd::grad({first[0].pow(2).sum()}, {p.q});
    FAIL() << "a second derivative came out";
  } catch (const std::exception& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("linear_attention"), std::string::npos) << message;
    EXPECT_NE(message.find("differentiated once"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace lagwise::ops
