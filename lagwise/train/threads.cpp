#include "lagwise/train/threads.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include "lagwise/ops/torch/blas_threads.h"

namespace lagwise {

void pin_threads(int64_t threads) {
  // Not at::set_num_threads: it also makes a pool for other parts of torch whose
  // threads spin. The first call lets ATen set its default, which would later undo
  // ours.
  at::get_num_threads();
  omp_set_num_threads(static_cast<int>(threads));
  ops::set_blas_threads(1);
}

}  // namespace lagwise
