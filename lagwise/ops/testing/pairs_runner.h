#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "lagwise/ops/testing/all_pairs.h"
#include "lagwise/ops/testing/linear_outcome.h"
#include "lagwise/ops/testing/rounding.h"

/// Test support: how an operator is held against its definition on the cases of
/// all_pairs.h.
namespace lagwise::ops::testing {

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

/// The operator in f64 and in f32 against `exact`, with every gradient. f32 may lose
/// what rounding_of says of the problem (linear_rounding.h, exact_rounding.h).
template <class Operator, class AnyProblem>
void expect_definition(const Operator& op, const Outcome& exact, const AnyProblem& f64,
                       const AnyProblem& f32) {
  {
    SCOPED_TRACE("f64");
    expect_close(run_whole(op, f64), exact, 1e-10);
  }
  SCOPED_TRACE("f32");
  expect_within(run_whole(op, f32), exact, rounding_of(f64));
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
