#pragma once

#include <c10/util/BFloat16.h>

#include <string>

#include "lagwise/core/mat_view.h"

namespace lagwise::ops {

/// c [m, n] = a [m, k] b [k, n], or c += a b, by one thread: the product under dense
/// layers. This is the one place that decides who computes it. In f32 it is oneDNN with
/// torch 1.13 and MKL with torch 2 (ops/products/); in f64, which serves tests alone, the
/// BLAS of torch.
///
/// The numbers of a row or those of a column of a and b must lie side by side, those of
/// a row of c must. Without rows, columns or depth nothing is read.
void multiply(MatView<const float> a, MatView<const float> b, bool add,
              MatView<float> c);
void multiply(MatView<const double> a, MatView<const double> b, bool add,
              MatView<double> c);

/// The same of factors in bf16, summed in f32. A product of two bf16 numbers is exact in
/// f32, so all ways differ in the order of their sums alone:
///
///     tiles          ours, by the tiles of AMX (ops/products/tiles.h)
///     instructions   oneDNN's product of bf16, where the CPU has instructions for it
///                    (AVX512_BF16) and no tiles; not with torch 2
///     widening       the factors become f32 again; any CPU, slower than f32 itself
enum class ShortProduct { tiles, instructions, widening };
ShortProduct best_short_product();  ///< on this CPU
void multiply(MatView<const c10::BFloat16> a, MatView<const c10::BFloat16> b, bool add,
              MatView<float> c, ShortProduct way = best_short_product());

/// Who computes it in f32: "oneDNN 2.6.3", "MKL 2024.2".
std::string matrix_product_library();

}  // namespace lagwise::ops
