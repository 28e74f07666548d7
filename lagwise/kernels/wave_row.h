#pragma once

#include <cstdint>

namespace lagwise::kernels {

/// The waves of one position:
///
///     cosine_i = cos(2 pi (f_i p + phase_i)),  sine_i the same with sin
///
/// Angles are reduced to parts of a turn in double: they hold at any p below 2^29.
/// phase: null is 0. frequency and phase are in whole turns.
void wave_row(const double* frequency, const double* phase, int64_t count,
              double position, float* cosine, float* sine) noexcept;

}  // namespace lagwise::kernels
