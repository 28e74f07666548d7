#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lagwise/ops/testing/linear_outcome.h"

/// Test support: how much f32 may lose. A sum of n terms, added up in any order with
/// unit roundoff u = 2^-24, errs by at most n u sum |terms|; errors of both signs
/// cancel, so that sqrt(n) u sum |terms| is hardly ever exceeded (Higham, Mary, "A new
/// approach to probabilistic rounding error analysis", 2019). That is a property of the
/// sum: it does not depend on the machine or on a library's order of adding up.
namespace lagwise::ops::testing {

/// What a sum of so many terms may lose of the sum of their sizes. A quarter is added
/// for what is no sum: exponentials, quotients.
inline double loss_of_sum(int64_t terms) {
  return 1.25 * 0x1p-24 * std::sqrt(static_cast<double>(std::max<int64_t>(1, terms)));
}

/// Every number of every result within its own loss of the exact one. 1e-30: numbers
/// too small for f32.
inline void expect_within(const Outcome& ours, const Outcome& exact,
                          const Outcome& losses) {
  ASSERT_EQ(ours.size(), exact.size());
  ASSERT_EQ(ours.size(), losses.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    const at::Tensor have = ours[i].value.to(at::kDouble);
    if (have.numel() == 0) continue;
    const at::Tensor gap = (have - or_zeros(exact[i].value, have)).abs();
    const at::Tensor loss = or_zeros(losses[i].value, have) + 1e-30;
    EXPECT_TRUE(gap.le(loss).all().item<bool>())  // false of NaN
        << ours[i].name << ": errs by " << largest(gap / loss)
        << " times what rounding explains, at most " << largest(gap)
        << ", largest number " << largest(have);
  }
}

}  // namespace lagwise::ops::testing
