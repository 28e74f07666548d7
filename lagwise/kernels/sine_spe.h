#pragma once

#include <cstdint>

namespace lagwise::kernels {

/// The waves of one head. Feature d of a query or key is multiplied by P of them,
///
///     w_{2k}(n)   = amplitude_dk cos(2 pi (frequency_dk n + phase_dk))     k < K
///     w_{2k+1}(n) = amplitude_dk sin(2 pi (frequency_dk n + phase_dk))
///     w_{2K}(n)   = constant_d                        (gated only: P = 2K + 1)
///
/// so that a row x(n) of D numbers becomes F = P D features u_{dP+i} = x_d w_i(n).
struct SineHead {
  int64_t d = 0, sines = 0;
  const double* frequency = nullptr;  ///< [D, K], turns per position
  const double* amplitude = nullptr;  ///< [D, K]
  const double* constant = nullptr;   ///< [D]; null: not gated

  int64_t waves() const { return 2 * sines + (constant != nullptr ? 1 : 0); }
  int64_t features() const { return d * waves(); }
};

/// How F features become `width` numbers: y = u [Z; gate] with dense noise, or, by a
/// fold, y_b = sum of +-u_f over the features f that fall into bin b.
template <class T>
struct SineMix {
  int64_t width = 0;
  const T* z = nullptr;           ///< [D, 2K, width] dense; null: fold
  const T* gate = nullptr;        ///< [D, width] dense, where gated
  const int64_t* fold = nullptr;  ///< [F], +-(bin + 1)
};

/// The same rows and columns in each of `count` batch rows: element (b, i, j) stands
/// at data[b * step + i * row_step + j * col_step].
template <class T>
struct SineRows {
  T* data = nullptr;
  int64_t count = 0, step = 0, row_step = 0, col_step = 1;

  T* at(int64_t b, int64_t i) const { return data + b * step + i * row_step; }
};

/// Queries or keys of one head, with their places.
struct SineSide {
  const double* positions = nullptr;  ///< [N]
  int64_t rows = 0;                   ///< N
  const double* phase = nullptr;      ///< [D, K] in turns; null: 0
};

/// Where the gradients of the waves are added.
struct SineGradients {
  double* frequency = nullptr;  ///< [D, K]
  double* amplitude = nullptr;  ///< [D, K]
  double* phase = nullptr;      ///< [D, K]; null: not wanted
  double* constant = nullptr;   ///< [D]; null: not gated
};

/// Memory that the calls for one head share, so that queries and keys use one table of
/// cosines and one packed matrix. Give each head a new one, with `reals` and `doubles`
/// as long as sine_scratch says.
template <class T>
struct SineScratch {
  T* reals = nullptr;
  double* doubles = nullptr;
  int64_t steps = 0;    ///< rows of the table of steps that are ready
  bool packed = false;  ///< whether Z is packed
};

struct SineScratchSize {
  int64_t reals, doubles;
};

template <class T>
SineScratchSize sine_scratch(const SineHead& head, const SineMix<T>& mix,
                             int64_t batch);

/// SineSPE of one head: y(n) = u(n) M for every batch row, without
/// forming the code [N, D, R].
///
/// Shapes    x [batch, N, D], y [batch, N, width]; every element of y is written.
/// Cost      dense: min(2 P B, 2 P + 2 B) D R flops a position; fold: P D B signed
///           additions.
/// Numerics  f n is reduced mod 1 in double at every 32nd position (at each one where
///           positions do not count up by 1); within 32 the angles are added.
///           Waves are good to 5e-7 in float at any position up to 10^8.
/// Paper     Liutkus et al., "Relative Positional Encoding for Transformers with Linear
///           Complexity", ICML 2021, section 3. https://arxiv.org/abs/2105.08399
template <class T>
void sine_encode(const SineHead& head, const SineMix<T>& mix, const SineSide& side,
                 SineRows<const T> x, SineRows<T> y, SineScratch<T>& scratch) noexcept;

/// The gradients of the same, given that of y. With g_i = (dy M^T)_{dP+i},
///
///     dx_d          = sum_i w_i g_i
///     d amplitude_k = sum_n x_d (cos g_2k + sin g_2k+1)
///     d angle_k(n)  = x_d amplitude_k (cos g_2k+1 - sin g_2k)
///     d phase_k     = 2 pi sum_n d angle_k(n)
///     d frequency_k = 2 pi sum_n n d angle_k(n)
///
/// where cos and sin are those of the angle of wave k at position n.
///
/// Shapes    x [batch, N, D], dy [batch, N, width], dx [batch, N, D].
/// Numerics  sums over positions and batch rows are kept in double.
template <class T>
void sine_gradient(const SineHead& head, const SineMix<T>& mix, const SineSide& side,
                   SineRows<const T> x, SineRows<const T> dy, SineRows<T> dx,
                   const SineGradients& to, SineScratch<T>& scratch) noexcept;

}  // namespace lagwise::kernels
