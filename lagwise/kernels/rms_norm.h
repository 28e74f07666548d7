#pragma once

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// Takes the size out of every row and gives each column a gain, in one pass:
///
///     r_i = (mean_j x_ij^2 + eps)^(-1/2)
///     y_ij = x_ij r_i gain_gj,   g = i mod G
///
/// gain [G, columns]: G rows after each other have gains of their own, such as the heads
/// of a token; G = 1 is the usual norm.
///
/// Requires  columns side by side (col_step 1); inv_size [rows] gets r.
/// Paper     Zhang and Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019.
template <class T>
void rms_norm(MatView<const T> x, MatView<const T> gain, double eps, MatView<T> y,
              T* inv_size) noexcept;

/// The chain rule through it, with u = dy gain:
///
///     dx_i = start_i + r_i (u_i - x_i r_i^2 mean_j u_ij x_ij)
///     gain_gradient_gj += sum over rows i of group g of dy_ij x_ij r_i
///
/// start: what x gets from elsewhere, such as a residual path; without data 0. It may be
/// dx itself.
template <class T>
void rms_norm_gradient(MatView<const T> x, MatView<const T> gain, const T* inv_size,
                       MatView<const T> dy, MatView<const T> start, MatView<T> dx,
                       MatView<T> gain_gradient) noexcept;

}  // namespace lagwise::kernels
