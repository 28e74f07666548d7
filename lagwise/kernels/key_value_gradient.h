#pragma once

#include "lagwise/kernels/linear_attention.h"

namespace lagwise::kernels {

/// dk and dv of causal linear attention in one pass: both read the same sum
/// R_j = sum_{i >= j} g^(i-j) q_i^T G_i, which is built once.
///
///     dv_j = k_j R_j             r_j = sum_{i >= j} g^(i-j) c_i q_i
///     dk_j = v_j R_j^T + r_j
///
/// Shapes    q, k [N, D]; G, v [N, E]. With a denominator c is the `extra` column of G
///           and v has one of ones; without one, both are empty and r is left out.
///           All inputs and outputs are given with their last row first.
/// State     s [D, E] and z [D] hold R and r, read and advanced in place.
/// Decay     none or per head: one per channel would fade the two results apart.
/// Requires  scratch of key_value_gradient_scratch<T>(D, E) numbers.
/// Cost      6 N D E flops where two passes of `causal_linear` need 8.
/// Threads   none.
template <class T>
void key_value_gradient(const Rows<T>& q, const Rows<T>& gradient, const Rows<T>& k,
                        const Rows<T>& v, const Decay<T>& decay, MatView<T> s, T* z,
                        const Sink<T>& to_key, const Sink<T>& to_value,
                        T* scratch) noexcept;

template <class T>
int64_t key_value_gradient_scratch(int64_t d, int64_t e);

}  // namespace lagwise::kernels
