#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>

namespace lagwise::ops {

/// Calls fn(begin, end) over pieces of [0, size), in parallel: eight, or fewer where
/// `least` would not fill one. How they are cut depends on `size` alone, so that the
/// bits of what is computed do not depend on the number of threads.
template <class Fn>
void in_pieces(int64_t size, int64_t least, const Fn& fn) {
  const int64_t piece = std::max(least, (size + 7) / 8);
  at::parallel_for(0, (size + piece - 1) / piece, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      fn(i * piece, std::min(size, (i + 1) * piece));
  });
}

}  // namespace lagwise::ops
