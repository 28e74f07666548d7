#pragma once

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// Takes the size out of every row and gives each column a gain, in one pass:
///
///     r_i = (mean_j x_ij^2 + eps)^(-1/2)
///     y_ij = x_ij r_i gain_j
///
/// Requires  columns side by side (col_step 1); inv_size [rows] gets r.
/// Paper     Zhang and Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019.
template <class T>
void rms_norm(MatView<const T> x, const T* gain, double eps, MatView<T> y,
              T* inv_size) noexcept;

/// The chain rule through it, with g = dy gain:
///
///     dx_i = r_i (g_i - x_i r_i^2 mean_j g_ij x_ij)
///     gain_gradient_j += sum_i dy_ij x_ij r_i
template <class T>
void rms_norm_gradient(MatView<const T> x, const T* gain, const T* inv_size,
                       MatView<const T> dy, MatView<T> dx, T* gain_gradient) noexcept;

}  // namespace lagwise::kernels
