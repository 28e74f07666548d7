#pragma once

#include <cstdint>

namespace lagwise::kernels {

/// y_i = x_i Phi(x_i), Phi the distribution function of the standard normal:
///
///     Phi(x) = (1 + erf(x / sqrt 2)) / 2
///
/// f32: Phi(-|x|) = p(t) e^(-x^2 / 2) / 2 with t = 1 / (1 + c |x|) and p of degree 5
/// (Abramowitz and Stegun, 7.1.26); with rounding Phi is off by less than 2e-7. f64:
/// std::erfc.
/// x and y may be the same.
/// Paper  Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
template <class T>
void gelu(const T* x, int64_t count, T* y) noexcept;

/// Again y, and the chain rule through it, with phi the density:
///
///     dx_i = dy_i (Phi(x_i) + x_i phi(x_i)),   phi(x) = e^(-x^2 / 2) / sqrt(2 pi)
///
/// dx and dy may be the same, and so may x and y.
template <class T>
void gelu_gradient(const T* x, const T* dy, int64_t count, T* y, T* dx) noexcept;

}  // namespace lagwise::kernels
