#pragma once

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// Mixes each row with the K - 1 rows before it, each column by itself:
///
///     y_t = sum_{j<K} taps_j x_{t-j}
///
/// The rows x_{-K+1} .. x_{-1} are those of `before`; without data they are 0.
///
/// Shapes    x, y [N, W]; taps [K, W]; before [K - 1, W]
/// Requires  columns side by side (col_step 1) everywhere
/// Order     j upwards, so that rows have the same bits however a sequence is cut.
template <class T>
void short_convolution(MatView<const T> before, MatView<const T> x,
                       MatView<const T> taps, MatView<T> y) noexcept;

/// The chain rule through it, for some rows x of a sequence. Row t of x went into the
/// rows t + first .. t + first + K - 1 of dy, as far as dy has them:
///
///     dx_t = sum_j taps_j dy_{t+first+j}
///     taps_gradient_j += sum_t x_t dy_{t+first+j}
///
/// first = 0: x begins where dy does; first = 1 - K: x are the rows before.
template <class T>
void short_convolution_gradient(MatView<const T> x, MatView<const T> taps,
                                MatView<const T> dy, int64_t first, MatView<T> dx,
                                MatView<T> taps_gradient) noexcept;

}  // namespace lagwise::kernels
