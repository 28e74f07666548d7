#pragma once

#include <c10/util/BFloat16.h>

#include "lagwise/core/mat_view.h"

namespace lagwise::ops::products {

/// Whether this process may multiply by the tiles of AMX: the CPU has them for bf16, and
/// the system lets us use them.
bool can_use_tiles();

/// c [m, n] = a [m, k] b [k, n], or c += a b, of factors in bf16 with sums in f32, by the
/// tiles of AMX, on the calling thread. Requires can_use_tiles(), and that the numbers of
/// a row or those of a column of a and b lie side by side, those of a row of c do.
///
/// Ours, because Debian's oneDNN asks the CPU for a number that some virtual machines
/// hide (CPUID 1D, the palettes of tiles), and then dies of an illegal instruction.
///
/// A row of c is the same to the bit whatever rows are computed beside it.
void multiply_by_tiles(MatView<const c10::BFloat16> a, MatView<const c10::BFloat16> b,
                       bool add, MatView<float> c);

}  // namespace lagwise::ops::products
