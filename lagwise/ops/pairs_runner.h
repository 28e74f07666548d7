#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "lagwise/ops/all_pairs.h"
#include "lagwise/ops/linear_outcome.h"

/// Test support: how an operator is held against its definition on the cases of
/// all_pairs.h.
namespace lagwise::ops::testing {

/// f32: at most twice the error of plain torch in f32. Where torch happens to be
/// exact (one row, one column) that would demand exactness of us too, so four
/// units in the last place of the tensor's largest number are always allowed.
inline void expect_no_worse_than_torch(const Outcome& ours, const Outcome& torch,
                                       const Outcome& exact) {
  for (size_t i = 0; i < exact.size(); ++i) {
    const at::Tensor& have = ours[i].value;
    const at::Tensor want = or_zeros(exact[i].value, have);
    const double torch_error = distance(or_zeros(torch[i].value, have), want);
    const double floor = 4 * 1.2e-7 * largest(want) + 1e-7;
    EXPECT_LE(distance(have, want), 2 * torch_error + floor)
        << ours[i].name << ": plain torch errs by " << torch_error
        << ", largest number " << largest(want);
  }
}

/// What the operator gives: all of it there, in the type of the inputs.
template <class Operator, class AnyProblem>
Outcome run_whole(const Operator& op, const AnyProblem& p) {
  const Outcome ours = run(op, p);
  for (const Result& x : ours) {
    EXPECT_TRUE(x.value.defined()) << x.name << " got no gradient";
    EXPECT_EQ(x.value.scalar_type(), p.q.scalar_type()) << x.name;
  }
  return ours;
}

/// The operator in f64 and in f32 against `exact`, with every gradient; `torch` is
/// plain torch, the yardstick of f32.
template <class Operator, class Torch, class AnyProblem>
void expect_definition(const Operator& op, const Torch& torch, const Outcome& exact,
                       const AnyProblem& f64, const AnyProblem& f32) {
  {
    SCOPED_TRACE("f64");
    expect_close(run_whole(op, f64), exact, 1e-10);
  }
  SCOPED_TRACE("f32");
  expect_no_worse_than_torch(run_whole(op, f32), run(torch, f32), exact);
}

/// Every legal pair of values stands in some case, and no other does; how many there
/// are.
template <class Legal>
size_t expect_cover(const std::vector<lagwise::testing::Choice>& cases,
                    const std::vector<int>& sizes, const Legal& is_legal) {
  const auto wanted = lagwise::testing::legal_pairs(sizes, is_legal);
  auto missing = wanted;
  for (const auto& choice : cases)
    for (const auto& pair : lagwise::testing::pairs_of(choice)) {
      EXPECT_TRUE(is_legal(pair));
      missing.erase(pair);
    }
  EXPECT_TRUE(missing.empty());
  return wanted.size();
}

}  // namespace lagwise::ops::testing
