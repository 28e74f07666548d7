#pragma once

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// Which two coordinates share a plane. P planes take the first 2P coordinates.
enum class Pairs {
  interleaved,  ///< (2j, 2j+1): RoFormer, GPT-J
  half,         ///< (j, j+P): NeoX, Llama
};

/// Turns every row of one head in its planes: the arithmetic of RoPE and LRPE.
///
///     y_a = c x_a - s x_b      (a, b) the coordinates of plane j,
///     y_b = c x_b + s x_a      c = table(i, j), s = table(i, P + j)
///     y_e = x_e                for e >= 2P
///
/// `opposite` negates s: the way back, and the gradient of x.
///
/// Shapes    x, y [N, D]; table [N, 2P], cosines then sines; 2P <= D.
/// Requires  columns one apart in all three (col_step 1); y is not x.
/// Cost      6 N P flops: as fast as memory copies x to y, if the table is in cache.
/// Paper     Su et al., "RoFormer", 2021. https://arxiv.org/abs/2104.09864
template <class T>
void rotate(MatView<const T> x, MatView<const T> table, Pairs pairs, bool opposite,
            MatView<T> y) noexcept;

/// Adds to d_table what the rotation of x hands back to its table, given the
/// gradient g of y:
///
///     d_table(i, j)     += g_a x_a + g_b x_b
///     d_table(i, P + j) += g_b x_a - g_a x_b     (opposite: negated)
///
/// Shapes    x, g [N, D]; d_table [N, 2P]. Requires and Cost as above.
template <class T>
void rotate_gradient(MatView<const T> x, MatView<const T> g, Pairs pairs, bool opposite,
                     MatView<T> d_table) noexcept;

}  // namespace lagwise::kernels
