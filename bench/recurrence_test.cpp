#include "bench/recurrence.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/torch_linear.h"

namespace lagwise::bench {
namespace {

/// [B, H, N, D]: widths that are no multiple of a vector, N past one chunk.
struct Problem {
  at::Tensor q = at::rand({2, 3, 150, 21}).set_requires_grad(true);
  at::Tensor k = at::rand({2, 3, 150, 21}).set_requires_grad(true);
  at::Tensor v = at::rand({2, 3, 150, 13}).set_requires_grad(true);
  at::Tensor grad_out = at::rand({2, 3, 150, 13}) - 0.5;
};

::testing::AssertionResult close(const at::Tensor& x, const at::Tensor& y) {
  if (x.sizes() == y.sizes() && at::allclose(x, y, 1e-4, 1e-4)) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << "far apart, or " << x.sizes() << " and " << y.sizes();
}

void expect_equal_to_torch(const RecurrenceOptions& options) {
  const Problem p;
  ops::LinearOptions same;
  same.causal = true;
  same.denominator = options.normalised ? "same" : "none";
  const at::Tensor expected = torch_linear(p.q, p.k, p.v, {}, same).out;
  const auto gradients =
      torch::autograd::grad({expected}, {p.q, p.k, p.v}, {p.grad_out});

  const at::Tensor q = p.q.detach(), k = p.k.detach(), v = p.v.detach();
  const RecurrenceResult result = recurrence(q, k, v, options);
  EXPECT_TRUE(close(result.out, expected.detach()));
  const auto ours = recurrence_backward(q, k, v, result, p.grad_out, options);
  EXPECT_TRUE(close(ours.dq, gradients[0]));
  EXPECT_TRUE(close(ours.dk, gradients[1]));
  EXPECT_TRUE(close(ours.dv, gradients[2]));
}

TEST(Recurrence, EqualsTorchWithoutADenominator) {
  expect_equal_to_torch({.normalised = false, .passes = Passes::two});
  expect_equal_to_torch({.normalised = false, .passes = Passes::one});
}

TEST(Recurrence, EqualsTorchWithADenominator) {
  expect_equal_to_torch({.normalised = true, .passes = Passes::two});
  expect_equal_to_torch({.normalised = true, .passes = Passes::one});
}

TEST(Recurrence, RefusesWhatItWouldMisread) {
  const at::Tensor x = at::rand({1, 2, 5, 4});
  EXPECT_THROW(recurrence(x.transpose(2, 3), x, x, {}), c10::Error);
  EXPECT_THROW(recurrence(x.to(at::kDouble), x, x, {}), c10::Error);
}

}  // namespace
}  // namespace lagwise::bench
