#pragma once

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// The way back through the division o_i = num_i / den_i of one head.
///
///     inverse_i = 1 / den_i                     (0 where den_i = 0)
///     d_den_i   = -(d_out_i . out_i) / den_i    (0 where den_i <= floor)
///
/// Shapes   d_out, out [N, E]; den, inverse, d_den [N, 1].
/// Requires floor = eps where the denominator was clamped there, else -infinity.
template <class T>
void denominator_gradient(MatView<const T> d_out, MatView<const T> out,
                          MatView<const T> den, T floor, MatView<T> inverse,
                          MatView<T> d_den) noexcept;

}  // namespace lagwise::kernels
