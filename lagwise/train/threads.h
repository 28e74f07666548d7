#pragma once

#include <cstdint>

namespace lagwise {

/// The cores of this machine that the process may run on.
int64_t usable_cores();

/// From here on torch and its BLAS work with `threads` threads. OpenBLAS splits a
/// product by their number, so the last bits of a run depend on it: who wants the same
/// bits again pins the same number.
void pin_threads(int64_t threads);

}  // namespace lagwise
