#pragma once

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// y_ij = u_ij Phi(u_ij) with u_ij = x_ij + b_j, Phi the distribution function of the
/// standard normal:
///
///     Phi(u) = (1 + erf(u / sqrt 2)) / 2
///
/// f32: Phi(-|u|) = p(t) e^(-u^2 / 2) / 2 with t = 1 / (1 + c |u|) and p of degree 5
/// (Abramowitz and Stegun, 7.1.26); with rounding Phi is off by less than 2e-7. f64:
/// std::erfc.
///
/// Shapes  x, y [rows, columns], their columns side by side; bias [columns], null: 0.
///         x and y may be the same.
/// Paper   Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
template <class T>
void gelu(MatView<const T> x, const T* bias, MatView<T> y) noexcept;

/// Again y, and the chain rule through it, with phi the density:
///
///     dx_ij = dy_ij (Phi(u_ij) + u_ij phi(u_ij)),   phi(u) = e^(-u^2 / 2) / sqrt(2 pi)
///
/// dx and dy may be the same, and so may x and y.
template <class T>
void gelu_gradient(MatView<const T> x, const T* bias, MatView<const T> dy, MatView<T> y,
                   MatView<T> dx) noexcept;

}  // namespace lagwise::kernels
