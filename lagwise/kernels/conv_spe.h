#pragma once

#include <array>
#include <cstdint>

#include "lagwise/core/mat_view.h"
#include "lagwise/kernels/noise_panel.h"

namespace lagwise::kernels {

/// A box of cells on a grid of three axes, the last running fastest; a line is the
/// box {1, 1, N}. Cell c looks at the samples c .. c + kernel - 1 of every axis.
struct ConvWindow {
  std::array<int64_t, 3> origin = {0, 0, 0};
  std::array<int64_t, 3> extent = {1, 1, 1};
  std::array<int64_t, 3> kernel = {1, 1, 1};

  int64_t cells() const { return extent[0] * extent[1] * extent[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t samples(int axis) const {
    const auto i = static_cast<size_t>(axis);
    return extent[i] + kernel[i] - 1;
  }
};

/// Where the samples z(d, r, p) of one head come from.
template <class T>
struct ConvNoise {
  NoiseRow row;  ///< of feature 0 and realisation 0; others are counted on from it
  NoiseKind kind = NoiseKind::normal;
  /// Position of a sample in the row: sum_i p_i pitch_i. The last pitch is 1.
  std::array<int64_t, 3> pitch = {0, 0, 1};
  /// If set, numbers to use instead: z(d, r, p) at
  /// given[d feature_step + r realisation_step + sum_i (p_i - given_origin_i) step_i].
  const T* given = nullptr;
  int64_t feature_step = 0, realisation_step = 0;
  std::array<int64_t, 3> step = {0, 0, 0}, given_origin = {0, 0, 0};
};

enum class ConvMethod { direct, fourier };

/// The faster method for these sizes, by measurement (conv_spe_bench.cpp).
ConvMethod faster_method(const ConvWindow& window);

/// Everything about a call for one head but its rows: sizes, noise, scale of a code.
template <class T>
struct ConvProblem {
  ConvWindow window;
  ConvNoise<T> noise;
  ConvMethod method = ConvMethod::direct;
  int64_t batch = 1, d = 1, r = 1;
  int sides = 1;  ///< 1, or 2: queries and keys at the same places share the noise
  T scale = 1;
};

/// Rows of all batch rows of one head: row i of batch row b at x.row(i) + b step.
template <class T>
struct ConvRows {
  MatView<T> x;
  int64_t step = 0;
  MatView<T> of(int64_t b) const {
    return {x.data + b * step, x.rows, x.cols, x.row_step, x.col_step};
  }
};

/// The queries or the keys of a head: what is read, their filter, what is written.
template <class T>
struct ConvSide {
  ConvRows<const T> x;  ///< [cells, D]
  const T* kernel;      ///< [D, taps], dense
  ConvRows<T> out;      ///< [cells, R]
};

/// ConvSPE of one head, forward: each feature is multiplied by filtered noise.
///
///     code_{d,r}(c) = scale sum_j a_d[j] z(d, r, c + j)
///     out_{c,r}     = sum_d x_{c,d} code_{d,r}(c)
///
/// The code, D R numbers a cell, exists for one feature, one panel of realisations and
/// some cells at a time. Every element of `out` is written.
///
/// Requires  conv_scratch<T>(problem) numbers of scratch.
/// Cost      per cell, side, d and r: 2 taps flops direct, about 7 log2 L in blocks of
///           L by Fourier transform; one draw per sample whatever the sides and batch.
/// Numerics  direct: a cell gives the same bits in any window that holds it.
/// Paper     Liutkus et al., "Relative Positional Encoding for Transformers with Linear
///           Complexity", ICML 2021. https://arxiv.org/abs/2105.08399
template <class T>
void conv_spe(const ConvProblem<T>& problem, const ConvSide<T>* sides,
              T* scratch) noexcept;

/// The same for the gradient of the queries or the keys.
template <class T>
struct ConvSideGradient {
  ConvRows<const T> x;
  const T* kernel;
  ConvRows<const T> d_out;  ///< [cells, R]
  ConvRows<T> d_x;          ///< [cells, D]
  T* d_kernel;              ///< [D, taps], dense, of this window
};

/// The gradients of conv_spe, from that of `out`:
///
///     d_x_{c,d}     = sum_r d_out_{c,r} code_{d,r}(c)
///     d_kernel_d[j] = scale sum_{c,r} z(d, r, c + j) sum_b x_{c,d} d_out_{c,r}
template <class T>
void conv_spe_gradient(const ConvProblem<T>& problem, const ConvSideGradient<T>* sides,
                       T* scratch) noexcept;

/// Numbers of scratch that conv_spe and conv_spe_gradient need.
template <class T>
int64_t conv_scratch(const ConvProblem<T>& problem);

}  // namespace lagwise::kernels
