#pragma once

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <limits>

#include "lagwise/ops/testing/linear_outcome.h"
#include "lagwise/ops/testing/linear_problem.h"
#include "lagwise/ops/testing/memory_reference.h"
#include "lagwise/ops/testing/rounding.h"

/// Test support: calls of linear attention with gates and writing strengths.
namespace lagwise::ops::testing {

enum class Rule { gated, delta, gated_delta };
inline constexpr const char* kRuleNames[] = {"gated", "delta", "gated_delta"};

/// Gates from nearly none to a factor of 0.4 a step, strengths from 0 to 1.8 of what
/// replaces a key's value whole: b |phi(k)|^2 < 2, or the state would grow. Numbers that
/// f32 represents exactly.
inline Problem with_memory(Problem p, Rule rule, uint64_t seed = 7) {
  Random random(seed);
  const std::vector<int64_t> rows = {p.q.size(0), p.q.size(1), p.q.size(2)};
  if (rule != Rule::delta) p.options.log_decay = random.uniform(rows, -0.9F, -0.001F);
  if (rule == Rule::gated) return p;
  const at::Tensor features = reference::feature_map(p.k, p.options.feature_map);
  const at::Tensor most = features.square().sum(-1).clamp_min(1e-3).reciprocal();
  p.options.write_strength =
      (random.uniform(rows, 0.0F, 1.8F) * most).to(at::kFloat).to(at::kDouble);
  return p;
}

/// Makes row `row` of every head the first of a document.
inline Problem with_border(Problem p, int64_t row) {
  p.options.log_decay = p.options.log_decay.clone();
  p.options.log_decay.select(2, row).fill_(-std::numeric_limits<double>::infinity());
  return p;
}

/// Each result of ours errs by at most twice what plain torch errs, token by token in
/// f32, and what a sum of so many terms may lose of its largest number (rounding.h);
/// what the delta rule reads is a sum of sums, so twice that.
inline void expect_twice_torch(const Outcome& ours, const Outcome& torch,
                               const Outcome& exact, const Problem& p) {
  const int64_t terms = std::max({p.q.size(2), p.q.size(3), p.v.size(3)});
  const double loss = loss_of_sum(terms) * (p.options.write_strength.defined() ? 2 : 1);
  ASSERT_EQ(ours.size(), exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    const at::Tensor& have = ours[i].value;
    if (have.numel() == 0) continue;
    const at::Tensor want = or_zeros(exact[i].value, have);
    double size = largest(want);
    if (ours[i].name == "ddecay")  // a sum over all rows, with both signs
      for (const Result& x : exact)
        if (x.name == "dlog_decay" && x.value.defined())
          size = largest(x.value.abs().sum(at::IntArrayRef{0, 2}));
    if (ours[i].name == "dlog_decay")  // a running sum over rows, with both signs
      size = std::max(size, largest(want.diff(1, 2).abs().sum(2)));
    const double allowed =
        2 * distance(or_zeros(torch[i].value, have), want) + loss * size + 1e-30;
    EXPECT_LE(distance(have, want), allowed)
        << ours[i].name << ", largest number " << largest(want);
  }
}

}  // namespace lagwise::ops::testing
