#pragma once

#include <cstdint>

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// The loss of each row of scores x [rows, V] whose right class is target [rows]:
///
///     loss_i = ln sum_j e^(x_ij) - x_i,target
///
/// and with p the softmax of a row, gradient_ij = p_ij - (j == target_i), if `gradient`
/// has data. A target below 0 does not count: its loss and gradient are 0. Returns how
/// many rows have their largest score (the first of several) at the target.
///
/// Requires  columns side by side (col_step 1); targets below V.
template <class T>
int64_t softmax_loss(MatView<const T> x, const int64_t* target, T* loss,
                     MatView<T> gradient) noexcept;

}  // namespace lagwise::kernels
