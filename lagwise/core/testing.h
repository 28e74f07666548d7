#pragma once

// Support for tests; never part of the library.

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "lagwise/core/mat_view.h"
#include "lagwise/core/testing_mat.h"

namespace lagwise::testing {

template <class T>
MatView<const T> view_of(const Mat<T>& x) {
  return x.view();
}
template <class T>
MatView<const T> view_of(MatView<T> x) {
  return {x.data, x.rows, x.cols, x.row_step, x.col_step};
}

/// Expects, for all i and j,
///
///     |got_ij - want_ij| <= atol + rtol max_kl |want_kl|
///
/// and no NaN on either side; rtol = atol = 0 expects equality. The error is
/// measured against the largest element because a sum of terms of both signs may
/// come out near zero, where an element's own relative error means nothing.
/// Takes Mat and MatView of float and double in any combination.
template <class Got, class Want>
void expect_close(const Got& got_in, const Want& want_in, double rtol,
                  double atol = 0.0) {
  const auto got = view_of(got_in);
  const auto want = view_of(want_in);
  ASSERT_EQ(got.rows, want.rows) << "rows differ";
  ASSERT_EQ(got.cols, want.cols) << "columns differ";

  double largest = 0.0, worst = -1.0;
  int64_t worst_i = 0, worst_j = 0, nans = 0;
  for (int64_t i = 0; i < want.rows; ++i) {
    for (int64_t j = 0; j < want.cols; ++j) {
      const double g = got(i, j), w = want(i, j);
      // Equal infinities are close, though their difference is NaN.
      double error = g == w ? 0.0 : std::abs(g - w);
      if (std::isnan(error)) {
        error = std::numeric_limits<double>::infinity();
        ++nans;
      }
      if (std::isfinite(w)) largest = std::max(largest, std::abs(w));
      if (error > worst) worst = error, worst_i = i, worst_j = j;
    }
  }
  const double allowed = atol + rtol * largest;
  if (worst <= allowed) return;
  ADD_FAILURE() << "worst element (" << worst_i << ", " << worst_j << ") of "
                << want.rows << " x " << want.cols << ": got " << got(worst_i, worst_j)
                << ", want " << want(worst_i, worst_j) << ", error " << worst
                << ", allowed " << allowed << "; " << nans << " NaN";
}

/// The names of the instruction sets that for_each_simd_target visits.
inline std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (int64_t target : hwy::SupportedAndGeneratedTargets())
    names.emplace_back(hwy::TargetName(target));
  return names;
}

/// Runs `act` once for every instruction set that Highway compiled for and this
/// processor has, with run-time dispatch held to that one. Failures name it.
inline void for_each_simd_target(const std::function<void()>& act) {
  struct Restore {  // also when `act` throws
    ~Restore() { hwy::SetSupportedTargetsForTest(0); }
  } restore;
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(std::string("SIMD target ") + hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);  // the next dispatch chooses anew
    act();
  }
}

}  // namespace lagwise::testing
