#pragma once

#include <cstdint>

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

// bf16 is the upper half of an f32; here it is held as those 16 bits.

/// The nearest bf16 of each number, of two equally near the even one; of NaN 0x7fc0, as
/// torch has it. Nothing overlaps.
void round_to_bf16(const float* from, int64_t count, uint16_t* to) noexcept;

/// The way back, which is exact.
void widen_bf16(const uint16_t* from, int64_t count, float* to) noexcept;

/// to_j = sum_i x_ij, in the order of the rows, or with `add` that beside what is there.
/// x [rows, cols], columns side by side; to [cols].
void sum_bf16_rows(MatView<const uint16_t> x, bool add, float* to) noexcept;

}  // namespace lagwise::kernels
