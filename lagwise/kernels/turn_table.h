#pragma once

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// A rotation of the plane: cos and sin of its angle.
struct Turn {
  double c, s;
};

/// The turn by position * frequency, good to the last bits at any position. The
/// product is split exactly, p f = hi + lo, and only hi, a double, is reduced mod
/// 2 pi (by the C library, which does that exactly):
///
///     cos(hi + lo) = cos hi - lo sin hi,  sin(hi + lo) = sin hi + lo cos hi
///
/// up to lo^2 < 2^-60 for angles below 2^23. A float would be off by 0.02 rad at 10^6.
Turn turn(double position, double frequency) noexcept;

/// The cosines and sines of a whole sequence, for `rotate`.
///
///     table(i, j)     = scale cos(positions(i, axis_j) frequency[j])
///     table(i, P + j) = scale sin(positions(i, axis_j) frequency[j])
///
/// where the planes are dealt out to the A axes of a grid in equal parts, axis_j =
/// j / (P / A); on a line A = 1. A whole position is p = 64 a + b, and its turn the
/// turn of 64 a followed by that of b: a row depends on its position alone, so any
/// split of a sequence gives the same bits, but only every 64th row calls sin and cos.
///
/// Shapes    positions [N, A]; frequency [P], A divides P; table [N, 2P], col_step 1.
/// Requires  turn_table_scratch(P) doubles of scratch.
template <class T>
void turn_table(MatView<const double> positions, const double* frequency, double scale,
                MatView<T> table, double* scratch) noexcept;

int64_t turn_table_scratch(int64_t planes);

}  // namespace lagwise::kernels
