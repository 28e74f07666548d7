#pragma once

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// y = x B, or y += x B, for few rows x and a matrix that lies row by row: a query and a
/// key through the noise of SineSPE, or through the projection of LRPE.
///
/// Shapes    x [N, F], B [F, R], y [N, R]; columns side by side in all (col_step 1).
/// Cost      2 N F R flops; two rows share each pass over B.
/// Numerics  a row has the same bits whatever rows are computed beside it.
void row_product(MatView<const float> x, MatView<const float> b, bool add,
                 MatView<float> y) noexcept;

}  // namespace lagwise::kernels
