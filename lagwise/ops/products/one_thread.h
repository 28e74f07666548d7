#pragma once

#include <omp.h>

/// MKL's own number of threads for the calling thread; 0 means the common setting. The
/// libtorch_cpu of a wheel has MKL inside and lets it be called; elsewhere this is null.
extern "C" __attribute__((weak)) int MKL_Set_Num_Threads_Local(int threads);

namespace lagwise::ops::products {

/// While it lives, products of the calling thread are computed by that thread alone.
///
/// The pieces of a layer are shared out among threads by the caller, so a library under
/// it needs no more; and how it would cut a product among its threads would change the
/// order of sums, and with it the last bits. oneDNN takes as many threads as OpenMP
/// would give it, MKL as many as torch told it to.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ > 1) omp_set_num_threads(1);
    if (MKL_Set_Num_Threads_Local) mkl_before_ = MKL_Set_Num_Threads_Local(1);
  }
  ~OneThread() {
    if (before_ > 1) omp_set_num_threads(before_);
    if (MKL_Set_Num_Threads_Local) MKL_Set_Num_Threads_Local(mkl_before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
  int mkl_before_ = 0;
};

}  // namespace lagwise::ops::products
