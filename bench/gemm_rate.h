#pragma once

namespace lagwise::bench {

/// GFLOP/s (float32) of torch's matrix product on `threads` threads of this machine:
/// [1024, 512] x [512, 512] on each, all at once. It is what a good baseline is held
/// against (floors.h): baselines are made of such products, so what they reach follows
/// this rate, with its BLAS and its CPU, and not the peak of an FMA loop.
///
/// Cost  about 80 ms at 50 GFLOP/s a thread. BLAS is held to one thread meanwhile.
double gemm_gflops(int threads);

}  // namespace lagwise::bench
