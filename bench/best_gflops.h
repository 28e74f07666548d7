#pragma once

#include <functional>

namespace lagwise::bench {

/// The best rate, in GFLOP/s, at which `threads` threads do a piece of work each, all
/// at once: from the first start to the last end. `work` is given the number of its
/// thread and returns the flops it did. The best of eight rounds, so that a moment of
/// other work on the machine does not count.
double best_gflops(int threads, const std::function<double(int)>& work);

}  // namespace lagwise::bench
