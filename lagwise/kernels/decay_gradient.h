#pragma once

#include "lagwise/kernels/linear_attention.h"

namespace lagwise::kernels {

/// The gradient of log g, the logarithm of a decay: the derivative of a causal pass by
/// it, multiplied with features `at` and summed over the rows.
///
///     S_i  = g_i S_{i-1} + k_i v_i^T          S'_i = g_i (S'_{i-1} + S_{i-1})
///     moment_e += sum_i phi(at_i)_e (S'_i^T q_i)_e
///
/// S' is dS / dlog g: every term carries the number of its steps as a factor. All
/// terms keep their sign, whereas the shorter formula by positions,
/// sum (i+1) q.dq - sum (j+1) k.dk, cancels: its terms grow with N, the sum does not.
///
/// Shapes    q, k [N, D]; v, at [N, E]; s, s_slope [D, E]; moment [E];
///           decay by column, log_factor [1, E] (a col_step of 0 where they share one),
///           and with gates where rows have them.
/// State     s and s_slope are read and advanced.
/// Requires  decay_gradient_scratch<T>(D, E) numbers of scratch.
/// Cost      8 N D E flops.
template <class T>
void decay_gradient(const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                    const Decay<T>& decay, MatView<T> s, MatView<T> s_slope,
                    MatView<const T> at, FeatureMap map, double* moment,
                    T* scratch) noexcept;

template <class T>
int64_t decay_gradient_scratch(int64_t d, int64_t e);

}  // namespace lagwise::kernels
