#pragma once

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// y_ij += x_ij + b_j, in this order: what is added is summed first.
///
/// Shapes  x, y [rows, columns], their columns side by side; bias [columns]. x without
///         data is 0, and so is a null bias. x and y may be the same.
template <class T>
void add_rows(MatView<const T> x, const T* bias, MatView<T> y) noexcept;

}  // namespace lagwise::kernels
