#pragma once

#include <string>

#include "lagwise/core/mat_view.h"

namespace lagwise::ops {

/// c [m, n] = a [m, k] b [k, n], or c += a b, by one thread: the product under dense
/// layers. This is the one place that decides who computes it: oneDNN in f32, which
/// compiles its products for what the CPU can do, and the BLAS of torch in f64, which
/// serves tests alone.
///
/// The numbers of a row or those of a column of a and b must lie side by side, those of
/// a row of c must. Without rows, columns or depth nothing is read.
void multiply(MatView<const float> a, MatView<const float> b, bool add,
              MatView<float> c);
void multiply(MatView<const double> a, MatView<const double> b, bool add,
              MatView<double> c);

/// Who computes it in f32: "oneDNN 2.6.3".
std::string matrix_product_library();

}  // namespace lagwise::ops
