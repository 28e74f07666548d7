#pragma once

#include <cstdint>

namespace lagwise {

/// From here on torch works with `threads` threads and its BLAS with one: products are
/// cut for ATen's threads in ops/dense.h, by shape alone.
void pin_threads(int64_t threads);

}  // namespace lagwise
