#pragma once

#include <cstdint>

#include "lagwise/core/noise.h"

namespace lagwise::kernels {

/// What is drawn: both have mean 0 and variance 1.
enum class NoiseKind { normal, sign };

/// The noise of many realisations at once, a row of numbers per position:
///
///     out[i width + l] = draw(first + i) of realisation l, counted from that of `row`
///
/// with the same bits as NoiseRow draws, rounded to T. Realisations lie side by side in
/// a vector, so that one run of Philox serves four positions of all its lanes and
/// nothing is shuffled afterwards.
///
/// Requires  width a multiple of the lanes of a vector of float (one panel is);
///           positions and realisations in the range of NoiseRow.
/// Cost      about 6 instructions a sign, 18 a normal on AVX2: an eighth of single
///           draws.
template <class T>
void noise_panel(const NoiseRow& row, NoiseKind kind, int64_t first, int64_t count,
                 int64_t width, T* out) noexcept;

}  // namespace lagwise::kernels
