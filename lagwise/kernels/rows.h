#pragma once

#include <cstdint>

#include "lagwise/core/mat_view.h"
#include "lagwise/kernels/feature_map.h"

namespace lagwise::kernels {

/// The rows one side of a pass reads: [phi(x_i) scale_i | extra_i].
/// The appended column carries the denominator's path through the backward
/// pass (docs/maths/linear_attention.md, section 4).
template <class T>
struct Rows {
  MatView<const T> x;  ///< [N, D]
  FeatureMap map = {};
  MatView<const T> scale = {};  ///< [N, 1]; empty: 1
  MatView<const T> extra = {};  ///< [N, 1]; empty: no further column
  int64_t width() const { return x.cols + (extra.data ? 1 : 0); }
};

/// Where a pass writes: out_i = result_i * phi'(at_i), the chain rule through
/// a feature map; without `at`, out_i = result_i. Instead of writing rows it can
/// sum them up, as `decay_gradient` does: moment += sum_i phi(at_i) result_i.
template <class T>
struct Sink {
  MatView<T> out = {};       ///< [N, E]; empty: nothing is written
  MatView<const T> at = {};  ///< [N, E]; empty: no factor
  FeatureMap map = {};
  double* moment = nullptr;  ///< [E]; needs `at`
};

}  // namespace lagwise::kernels
