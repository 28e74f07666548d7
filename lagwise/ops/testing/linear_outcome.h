#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <string>
#include <vector>

#include "lagwise/ops/testing/linear_problem.h"

/// Test support: runs a problem forwards and backwards, and compares results.
namespace lagwise::ops::testing {

struct Result {
  std::string name;  ///< out, s, z; dq, dk, dv, dq_norm, dk_norm, ddecay, ds, dz
  at::Tensor value;
};
using Outcome = std::vector<Result>;

using Attention = LinearResult (*)(const at::Tensor&, const at::Tensor&,
                                   const at::Tensor&, const LinearState&,
                                   const LinearOptions&);

/// The gradient of each of `leaves` of the loss
///     <out, grad_out> + <s, grad_s> + <z, grad_z>.
/// The gradients enter the backward pass exactly as they lie in memory.
inline std::vector<at::Tensor> backward(const LinearResult& r, const Problem& p,
                                        const std::vector<at::Tensor>& leaves) {
  std::vector<at::Tensor> results, grads;
  const auto add = [&](const at::Tensor& result, const at::Tensor& grad) {
    if (!result.requires_grad()) return;
    results.push_back(result);
    grads.push_back(grad);
  };
  add(r.out, p.grad_out);
  add(r.state.s, p.grad_s);
  if (p.options.denominator != "none") add(r.state.z, p.grad_z);
  return torch::autograd::grad(results, leaves, grads, false, false, true);
}

/// Outputs, the state after, and the gradient of every input.
inline Outcome run(Attention attention, Problem p) {
  std::vector<at::Tensor> leaves;
  for (const NamedTensor& x : inputs(p)) {
    *x.tensor = x.tensor->detach().set_requires_grad(true);
    leaves.push_back(*x.tensor);
  }
  const LinearResult r = attention(p.q, p.k, p.v, p.from, p.options);
  Outcome outcome = {
      {"out", r.out.detach()}, {"s", r.state.s.detach()}, {"z", r.state.z.detach()}};
  const std::vector<at::Tensor> grads = backward(r, p, leaves);
  size_t i = 0;
  for (const NamedTensor& x : inputs(p)) {
    const at::Tensor& grad = grads[i++];
    const bool empty = x.tensor->numel() == 0;  // nothing that could be missing
    outcome.push_back({"d" + x.name, empty ? x.tensor->detach() : grad});
  }
  return outcome;
}

inline double largest(const at::Tensor& t) {
  return t.numel() == 0 ? 0.0 : t.abs().max().item<double>();
}

/// max |a - b|; infinite where a holds a NaN.
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) return 0.0;
  const at::Tensor gap = (a.to(at::kDouble) - b.to(at::kDouble)).abs();
  if (gap.isnan().any().item<bool>()) return std::numeric_limits<double>::infinity();
  return largest(gap);
}

/// Autograd leaves a gradient undefined where an input was never used: zero.
inline at::Tensor or_zeros(const at::Tensor& t, const at::Tensor& like) {
  return t.defined() ? t : at::zeros(like.sizes(), like.options());
}

/// Each result within `tolerance` of the expected one, relative to the largest
/// number in that tensor. 1e-13 is for tensors that are zero but for rounding.
inline void expect_close(const Outcome& got, const Outcome& expected,
                         double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const at::Tensor want = expected[i].value;
    if (!got[i].value.defined() && !want.defined()) continue;
    const at::Tensor have = or_zeros(got[i].value, want);
    ASSERT_EQ(have.sizes(), or_zeros(want, have).sizes()) << got[i].name;
    const at::Tensor target = or_zeros(want, have);
    EXPECT_LE(distance(have, target), tolerance * largest(target) + 1e-13)
        << got[i].name << ", largest number " << largest(target);
  }
}

/// Exactly the same numbers; NaN equals nothing.
inline void expect_same_bits(const Outcome& got, const Outcome& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].value.defined(), expected[i].value.defined());
    if (!got[i].value.defined()) continue;
    EXPECT_TRUE(got[i].value.equal(expected[i].value))
        << got[i].name << " is off by " << distance(got[i].value, expected[i].value)
        << " in " << (got[i].value != expected[i].value).sum().item<int64_t>() << " of "
        << got[i].value.numel();
  }
}

}  // namespace lagwise::ops::testing
