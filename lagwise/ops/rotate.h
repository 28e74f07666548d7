#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace lagwise::ops {

/// Cosines and sines of position * frequency, [B|1, H|1, N, 2P]: cosines, then sines.
/// Angles are formed in double, so that positions of 10^7 hold in a float table too.
///
///     positions  double [B|1, N, A]: A coordinates a row; 1 on a line
///     frequency  double [H|1, P]; gets a gradient. The P planes of a head are dealt
///                out to the axes in equal parts: the first P / A turn with axis 0
///     scale      multiplies every number (YaRN)
///     type       of the table: Float or Double
at::Tensor rotation_table(const at::Tensor& positions, const at::Tensor& frequency,
                          double scale, at::ScalarType type);

/// Turns the pairs of coordinates of every row, differentiable once, f32 or f64.
///
///     y_a = c x_a - s x_b,  y_b = c x_b + s x_a,  coordinates from 2P on unchanged
///
///     x       [B, H, N, D]
///     table   [B|1, H|1, N, 2P] of the same type, 2P <= D; gets a gradient
///     layout  "interleaved": planes (2j, 2j+1); "half": (j, j+P)
///     opposite  turn the other way
at::Tensor rotate(const at::Tensor& x, const at::Tensor& table,
                  const std::string& layout, bool opposite = false);

}  // namespace lagwise::ops
