#pragma once

#include "lagwise/kernels/linear_attention.h"

namespace lagwise::kernels {

/// One token of one head; the state moves on in place.
///
///     S = g S + k u^T        z = g z + k_norm
///     o = S^T q / den        den = q_norm . z + eps
///
/// with u = v; or, given a writing strength b, what the delta rule writes:
/// u = b (v - g S^T k).
///
/// Shapes    q, k [1, D]; q_norm, k_norm [1, F]; v, out [1, E]; s [D, E].
/// Requires  denominator.from is none or features, with z [F]; for a denominator
///           of the same features q_norm, k_norm are q, k. decay by
///           none, head or channel, with a writing strength none or head;
///           linear_step_scratch<T>(D, F) numbers of scratch.
/// Cost      4 D E flops, one pass over the state, or 6 D E and two passes by the delta
///           rule; nothing depends on the position.
template <class T>
void linear_step(const Rows<T>& q, const Rows<T>& k, const Rows<T>& q_norm,
                 const Rows<T>& k_norm, MatView<const T> v, const Decay<T>& decay,
                 const Denominator<T>& denominator, MatView<T> s, MatView<T> out,
                 T* scratch, const T* write_strength = nullptr) noexcept;

/// Numbers of scratch for features of width D and F, on any target.
template <class T>
constexpr int64_t linear_step_scratch(int64_t d, int64_t f) {
  constexpr int64_t kWidestPanel = 128 / sizeof(T);
  return 3 * d + 2 * f + 5 * kWidestPanel;
}

}  // namespace lagwise::kernels
