#pragma once

#include <string>

namespace lagwise::ops {

/// Threads of OpenBLAS's own pool; 1 where torch was loaded with another BLAS. (MKL, in
/// the wheels of torch, shares the threads of ATen.)
///
/// OpenBLAS of Debian keeps a pool of its own beside ATen's. Each pool's idle threads
/// spin for a while and take cores from the other, which costs a third of a training
/// step on two cores. Programs that compute with lagwise should leave all threads to
/// ATen: set_blas_threads(1).
int blas_threads();

/// Sets them; nothing happens with another BLAS.
void set_blas_threads(int threads);

/// "OpenBLAS 0.3.21 ...", "MKL 2024.2", or a warning that the matrix product is another
/// one, which makes every torch baseline slow.
std::string blas_name();
bool has_fast_blas();  ///< OpenBLAS or MKL

}  // namespace lagwise::ops
