#pragma once

#include <cstdint>

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// The gradient of the gates of some rows, from those of their queries and keys.
///
/// A gate l_t stands in the weight of every pair i >= t > j, which it multiplies by
/// e^(l_t). Each pair's share of the loss is in q_i . dq_i and, once more, in
/// k_j . dk_j; summed over the rows from t on, pairs on one side of t cancel:
///
///     d_gate_t += after + sum_{i >= t} (q_i . dq_i - k_i . dk_i)
///
/// with `after` the same for the row behind the last: <S, dS>, of the state S that the
/// rows hand on. Sums are f64; callers begin anew with `after` every few rows, so that
/// no error runs along a sequence.
///
/// Shapes    q, dq, k, dk [N, D]; weight [N, 1], a factor that k still lacks and dk is
///           the gradient with; empty: 1; gate, d_gate [N, 1], the latter added to.
/// Numerics  the sum is 0, not just nearly, at a border (gate = -inf), and with
///           `from_nothing`, where no state was given, at the first row.
template <class T>
void gate_gradient(MatView<const T> q, MatView<const T> dq, MatView<const T> k,
                   MatView<const T> dk, MatView<const T> weight, MatView<const T> gate,
                   bool from_nothing, double after, MatView<T> d_gate) noexcept;

/// sum_ij a_ij b_ij in f64, both [N, D].
template <class T>
double sum_of_products(MatView<const T> a, MatView<const T> b) noexcept;

}  // namespace lagwise::kernels
