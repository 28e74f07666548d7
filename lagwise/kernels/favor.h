#pragma once

#include <cstdint>

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// The random features of one head: each row through m random directions w_j, then
/// through a function of u_j = w_j . x / D^(1/4).
struct Favor {
  enum class Kind { positive, two_sided, relu };
  Kind kind = Kind::positive;
  double offset = 0.0;  ///< of relu

  int64_t width(int64_t directions) const {
    return kind == Kind::two_sided ? 2 * directions : directions;
  }
};

/// Lays out the right factor of a product, b [depth, cols] times `factor`, as the
/// passes below read it: strips of columns, padded with zeros.
template <class T>
void pack_panels(MatView<const T> b, T factor, T* to) noexcept;

/// Numbers that pack_panels writes, on any target.
template <class T>
int64_t packed_size(int64_t depth, int64_t cols);

/// Features y of rows x and the logarithm of a scale per row: the feature itself is
/// y exp(log_scale), so that y never overflows and its largest number is 1.
///
///     positive    y_j = exp(u_j - c)                    c = max_j u_j
///     two_sided   y = [exp(u_j - c), exp(-u_j - c)]     c = max_j |u_j|
///     relu        y_j = max(u_j, 0) + offset            no log_scale
///     log_scale = c - |x|^2 / (2 sqrt D) - ln(F) / 2
///
/// For Gaussian directions the mean of feature(q) . feature(k) over draws is then
/// exp(q . k / sqrt D), for positive and two_sided.
///
/// Shapes    x [N, D]; y [N, F], F = width(m); log_scale [N, 1], empty for relu.
/// Requires  right = pack_panels of the directions' transpose [D, m] with the factor
///           D^(-1/4); y dense along a row; scratch of favor_scratch<T>(m, D) numbers.
/// Threads   none. Rows may be split between callers: each comes out with the same
///           bits however they are split.
/// Paper     Choromanski et al., "Rethinking Attention with Performers", ICLR 2021.
///           https://arxiv.org/abs/2009.14794
template <class T>
void favor_rows(const Favor& favor, MatView<const T> x, const T* right, int64_t m,
                MatView<T> y, MatView<T> log_scale, T* scratch) noexcept;

/// The gradient of favor_rows by x, given y and those of y and log_scale. Of the
/// latter empty means zero.
///
///     du_j = dy_j y_j,   and at the largest u_j  dlog_scale - sum_j dy_j y_j  more
///     dx   = D^(-1/4) sum_j du_j w_j - dlog_scale x / sqrt D
///
/// Requires  right = pack_panels of the directions [m, D] with the factor D^(-1/4);
///           y, dy, dx dense along a row.
template <class T>
void favor_rows_gradient(const Favor& favor, MatView<const T> x, MatView<const T> y,
                         MatView<const T> dy, MatView<const T> dlog_scale,
                         const T* right, int64_t m, MatView<T> dx, T* scratch) noexcept;

/// Numbers of scratch either pass needs, on any target.
template <class T>
int64_t favor_scratch(int64_t m, int64_t d);

}  // namespace lagwise::kernels
