#include "lagwise/train/threads.h"

#include <ATen/Parallel.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>

#include "lagwise/ops/torch/blas_threads.h"

namespace lagwise {

int64_t usable_cores() {
  cpu_set_t ours;
  const bool known = sched_getaffinity(0, sizeof(ours), &ours) == 0;
  return std::max(1, known ? CPU_COUNT(&ours) : omp_get_num_procs());
}

void pin_threads(int64_t threads) {
  // Not at::set_num_threads: it also makes a pool for other parts of torch whose
  // threads spin. The first call lets ATen set its default, which would later undo
  // ours.
  at::get_num_threads();
  omp_set_num_threads(static_cast<int>(threads));
  ops::set_blas_threads(1);
}

}  // namespace lagwise
