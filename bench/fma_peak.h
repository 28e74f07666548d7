#pragma once

namespace lagwise::bench {

/// GFLOP/s (float32) of `threads` threads that do nothing but fused
/// multiply-adds in registers, all at once: the roof no kernel can pass.
///
/// Cost  about 30 ms; the best of a few short rounds, so that a moment of
///       other work on the machine does not lower the roof.
double fma_peak_gflops(int threads);

}  // namespace lagwise::bench
